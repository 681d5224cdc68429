#include "base/library.hpp"

#include <cmath>
#include <string>

#include "support/catch.hpp"

using Catch::Matchers::Contains;
using hocket::Library;
using hocket::StatusCode;

TEST_CASE("a library that is there is loaded, and its functions are found") {
  static constexpr const char* names[] = {"libhocket_absent.so.1", "libm.so.6"};
  const auto library = Library::open(names);
  REQUIRE(library.status().to_string() == "ok");
  double (*hypotenuse)(double, double) = nullptr;
  REQUIRE(library->find("hypot", hypotenuse).ok());
  REQUIRE(hypotenuse(3, 4) == 5);
}

TEST_CASE("of a library that is not there each name and its reason are told") {
  static constexpr const char* names[] = {"libhocket_absent.so.1", "/etc/passwd"};
  const auto status = Library::open(names).status();
  REQUIRE(status.code() == StatusCode::unsupported);
  REQUIRE_THAT(status.to_string(), Contains("no library libhocket_absent.so.1 or /etc/passwd"));
  REQUIRE_THAT(status.to_string(), Contains("libhocket_absent.so.1: cannot open shared object"));
  REQUIRE_THAT(status.to_string(), Contains("/etc/passwd: "));
}

TEST_CASE("a function that is not there is told with its library") {
  static constexpr const char* names[] = {"libm.so.6"};
  const auto library = Library::open(names);
  REQUIRE(library.ok());
  void (*function)() = nullptr;
  const auto status = library->find("hocket_absent", function);
  REQUIRE(status.code() == StatusCode::unsupported);
  REQUIRE_THAT(status.to_string(), Contains("the library libm.so.6 has no hocket_absent: "));
  REQUIRE(function == nullptr);
}

TEST_CASE("a table of functions is filled, or tells the first that is missing") {
  static constexpr const char* names[] = {"libm.so.6"};
  struct Good {
    hocket::FunctionFinder find;
    double (*hypotenuse)(double, double) = find("hypot");
    double (*root)(double) = find("sqrt");
  };
  const Good good = {hocket::FunctionFinder(Library::open(names).value())};
  REQUIRE(good.find.status().ok());
  REQUIRE((good.hypotenuse(3, 4) == 5 && good.root(49) == 7));
  struct Bad {
    hocket::FunctionFinder find;
    double (*root)(double) = find("sqrt");
    void (*before)() = find.if_there("hocket_before");
    double (*hypotenuse)(double, double) = find.if_there("hypot");
    void (*first)() = find("hocket_first");
    void (*second)() = find("hocket_second");
  };
  const Bad bad = {hocket::FunctionFinder(Library::open(names).value())};
  REQUIRE(bad.find.status().code() == StatusCode::unsupported);
  REQUIRE_THAT(bad.find.status().to_string(), Contains("libm.so.6 has no hocket_first"));
  REQUIRE((bad.root(49) == 7 && bad.first == nullptr && bad.second == nullptr));
  REQUIRE((bad.before == nullptr && bad.hypotenuse(3, 4) == 5));
}
