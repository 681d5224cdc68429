#include "program/json.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

using hocket::program::Json;
using hocket::program::JsonError;

namespace {

std::string again(std::string_view text) { return Json::parse(text).dump(); }

std::string refusal(std::string_view text) {
  try {
    return "accepted: " + Json::parse(text).dump();
  } catch (const JsonError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a document is written as it was put together") {
  const std::vector<std::string> names = {"a", "b"};
  Json document = {{"null", Json()},        {"flag", true},
                   {"number", -3},          {"large", std::numeric_limits<std::uint64_t>::max()},
                   {"names", names},        {"inner", {{"x", 1}, {"y", 2.5}}},
                   {"items", Json::array()}};
  document["items"].push_back({{"i", 1}});
  document["items"].push_back("text");
  document["empty"] = Json::object();
  CHECK(document.dump() ==
        R"({"null":null,"flag":true,"number":-3,"large":18446744073709551615,"names":["a","b"],)"
        R"("inner":{"x":1,"y":2.5},"items":[{"i":1},"text"],"empty":{}})");
  CHECK(Json{{"a", {{"b", Json::array()}, {"c", std::vector<int>{1, 2}}}}}.dump(2) ==
        "{\n  \"a\": {\n    \"b\": [],\n    \"c\": [\n      1,\n      2\n    ]\n  }\n}");
}

TEST_CASE("a list in braces is an object only if all of it are named values") {
  CHECK(Json{1, "two", 3.0}.dump() == R"([1,"two",3.0])");
  CHECK(Json({{"a", 1}, {2, 3}}).dump() == R"([["a",1],[2,3]])");
  CHECK(Json({{"a", 1, 2}}).dump() == R"([["a",1,2]])");
}

TEST_CASE("numbers are written in as few digits as read back the same") {
  const auto text = [](double number) { return Json(number).dump(); };
  CHECK(text(0) == "0.0");
  CHECK(text(-0.0) == "-0.0");
  CHECK(text(3) == "3.0");
  CHECK(text(0.1) == "0.1");
  CHECK(text(-12.5) == "-12.5");
  CHECK(text(100000) == "100000.0");
  CHECK(text(123456789012345) == "123456789012345.0");
  CHECK(text(1234567890123456) == "1.234567890123456e+15");
  CHECK(text(0.0001) == "0.0001");
  CHECK(text(0.00012) == "0.00012");
  CHECK(text(0.00001) == "1e-05");
  CHECK(text(1.5e300) == "1.5e+300");
  CHECK(text(std::nan("")) == "null");
  CHECK(text(std::numeric_limits<double>::infinity()) == "null");
  for (const double number : {1.0 / 3, 5e-324, 1.7976931348623157e308, 2.2250738585072014e-308}) {
    CHECK(Json::parse(text(number)).get<double>() == number);
  }
}

TEST_CASE("texts are escaped, and what is not UTF-8 is replaced") {
  CHECK(Json("\"\\/\b\f\n\r\t\x01\x7f").dump() == "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7f\"");
  CHECK(Json("ä€𝄞").dump() == "\"ä€𝄞\"");
  CHECK(Json(std::string("a\0b", 3)).dump() == R"("a\u0000b")");
  CHECK(Json("a\xff\xc3").dump() == "\"a\uFFFD\uFFFD\"");
  CHECK(Json("\xc0\x80").dump() == "\"\uFFFD\uFFFD\"");
  CHECK(Json("\xed\xa0\x80").dump() == "\"\uFFFD\uFFFD\uFFFD\"");
}

TEST_CASE("what is read is what was written") {
  CHECK(again(" { \"a\" : [ 1 , -2 , 3.5 , true , false , null , \"x\" ] , \"b\" : { } } \r\n\t") ==
        R"({"a":[1,-2,3.5,true,false,null,"x"],"b":{}})");
  CHECK(again("[]") == "[]");
  CHECK(again(R"("\"\\\/\b\f\n\r\t")") == R"("\"\\/\b\f\n\r\t")");
  CHECK(again(R"("\u00e4\u20AC\ud834\udd1e\u0000")") == "\"ä€𝄞\\u0000\"");
  CHECK(again("18446744073709551615") == "18446744073709551615");
  CHECK(again("-9223372036854775808") == "-9223372036854775808");
  CHECK(again("18446744073709551616") == "1.8446744073709552e+19");
  CHECK(again("1E3") == "1000.0");
  CHECK(again("0e-1") == "0.0");
}

TEST_CASE("what is not JSON is refused") {
  for (const std::string_view text : {"",
                                      " ",
                                      "{",
                                      "[",
                                      "]",
                                      "[1",
                                      "[1,",
                                      "[1,]",
                                      "[,1]",
                                      "[1 2]",
                                      "{1:2}",
                                      "{\"a\"}",
                                      "{\"a\":",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{\"a\" 1}",
                                      "nul",
                                      "nulll",
                                      "True",
                                      "01",
                                      "-",
                                      "-01",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "1e+",
                                      "+1",
                                      "0x10",
                                      "NaN",
                                      "1e999",
                                      "-1e999",
                                      "1 1",
                                      "\"",
                                      "\"a",
                                      "\"\\\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\u12g4\"",
                                      "\"\\",
                                      "\"\n\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\udc00\"",
                                      "\"\xff\"",
                                      "\"\xc0\x80\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xf4\x90\x80\x80\"",
                                      "\"\xe2\x82\"",
                                      "// 1",
                                      "[1]x"}) {
    INFO(text);
    CHECK(refusal(text).starts_with("not JSON at byte "));
  }
  CHECK(refusal(std::string_view("1\0", 2)).starts_with("not JSON"));
  CHECK(refusal(R"({"a": nope})") == "not JSON at byte 6: a value is missing");
}

TEST_CASE("every beginning of a document is refused, and none is read beyond its end") {
  const std::string document = R"({"a":[1,-2.5e3,true,{"b":"\u20ac\n"}],"c":null})";
  for (std::size_t size = 0; size < document.size(); ++size) {
    const std::string beginning(document.data(), size);  // of its own, so that sanitizers watch it
    INFO(beginning);
    CHECK(refusal(beginning).starts_with("not JSON"));
  }
  CHECK(again(document) == R"({"a":[1,-2500.0,true,{"b":"€\n"}],"c":null})");
}

TEST_CASE("a hostile document exhausts neither stack nor memory") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(again(nested(Json::depth_max)) == nested(Json::depth_max));
  CHECK(refusal(nested(10'000'000)).ends_with("it is nested too deeply"));
  std::string many = "[0";
  for (std::size_t i = 0; i < Json::values_max; ++i) many += ",0";
  CHECK(refusal(many + "]").ends_with("there are too many values"));
}

TEST_CASE("values are what was asked for, or an error") {
  const Json json = Json::parse(R"({"n": 300, "m": -1, "d": 1.5, "t": "x", "b": true, "a": [7]})");
  CHECK(json.at("n").get<int>() == 300);
  CHECK(json.at("n").get<std::uint16_t>() == 300);
  CHECK(json.at("n").get<double>() == 300);
  CHECK(json.at("d").get<double>() == 1.5);
  CHECK(json.at("b").get<bool>());
  CHECK(json.at("t").get<std::string>() == "x");
  CHECK(json.at("a").items().front().get<int>() == 7);
  CHECK(json.value("m", 5) == -1);
  CHECK(json.value("none", 5) == 5);
  CHECK(json.find("none") == nullptr);
  CHECK_THROWS_AS(json.at("n").get<std::uint8_t>(), JsonError);
  CHECK_THROWS_AS(json.at("m").get<unsigned>(), JsonError);
  CHECK_THROWS_AS(json.at("d").get<int>(), JsonError);
  CHECK_THROWS_AS(json.at("b").get<int>(), JsonError);
  CHECK_THROWS_AS(json.at("b").get<double>(), JsonError);
  CHECK_THROWS_AS(json.at("t").get<bool>(), JsonError);
  CHECK_THROWS_AS(json.at("n").get<std::string>(), JsonError);
  CHECK_THROWS_AS(json.value("t", 5), JsonError);
  CHECK_THROWS_AS(json.items(), JsonError);
  CHECK_THROWS_AS(json.at("none"), JsonError);
  CHECK_THROWS_AS(json.at("a").at("x"), JsonError);
  CHECK_THROWS_AS(Json(std::uint64_t{1} << 63U).get<std::int64_t>(), JsonError);
  CHECK_THROWS_AS(Json(1).push_back(2), JsonError);
  CHECK_THROWS_AS(Json(1)["a"], JsonError);
}

TEST_CASE("of members with the same name the last one counts") {
  CHECK(Json::parse(R"({"a": 1, "a": 2})").at("a").get<int>() == 2);
}
