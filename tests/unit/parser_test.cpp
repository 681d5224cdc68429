#include "program/parser.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using hocket::program::Parser;
using hocket::program::UsageError;

namespace {

using Words = std::vector<std::string>;

/// What is written to a descriptor while it lives.
class Captured {
 public:
  explicit Captured(std::FILE* stream)
      : stream_(stream), file_(std::tmpfile()), saved_(dup(fileno(stream))) {
    std::fflush(stream_);
    dup2(fileno(file_), fileno(stream_));
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() {
    restore();
    std::fclose(file_);
    close(saved_);
  }

  std::string text() {
    restore();
    std::string text;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    return text;
  }

 private:
  void restore() {
    std::fflush(stream_);
    dup2(saved_, fileno(stream_));
  }

  std::FILE* stream_;
  std::FILE* file_;
  int saved_;
};

/// A program with one command of each sort.
struct Program {
  Parser parser{"prog", "Does things."};
  Parser* sums = nullptr;
  int count = 4;
  int size = 7;
  std::optional<std::uint32_t> maybe = {};
  double ratio = 0.5;
  hocket::Duration time = 5s;
  bool json = false;
  bool tags = true;
  std::string shape = "round";
  std::vector<std::string> names = {"x"};
  std::vector<std::string> words = {};
  std::string first = {};
  std::vector<std::string> more = {};
  std::string at = "here";
  std::string ran = {};

  Program() {
    parser.set_version("prog 1.2");
    sums = &parser.add_command("sums", "Adds numbers");
    sums->add_option("-n,--count", &count, "How many").in_range(1, 9).with_default();
    sums->add_option("--size", &size, "How large").not_negative();
    sums->add_option("--maybe", &maybe);
    sums->add_option("--ratio", &ratio, "Of two").with_default();
    sums->add_option("--time", &time, "To wait").with_default();
    auto& as_json = sums->add_flag("--json", &json, "As JSON");
    sums->add_flag("--tags,!--no-tags", &tags, "With tags");
    sums->add_option("--shape", &shape, "Of it").one_of({"round", "square"}).excludes(as_json);
    sums->add_option("--names", &names, "Whose").comma_separated().with_default();
    sums->add_flag("--secret", &json).hidden();
    sums->on_run([this] { return done("sums"); });
    Parser& run = parser.add_command("run", "Runs a program");
    run.add_option("-x", &more);
    run.add_flag("--json", &json);
    run.refuse_empty_values();
    run.leave_words(&words);
    run.on_run([this] { return done("run"); });
    Parser& store = parser.add_command("store", "Asks a store");
    store.set_footer("A footer.");
    store.share_options();
    store.add_option("--at", &at, "Where");
    Parser& set = store.add_command("set", "Sets a value");
    set.add_option("key", &first, "Its name").required();
    set.add_option("values", &more).required(false);
    set.on_run([this] { return done("set"); });
  }

  int done(const char* what) {
    ran = what;
    return 0;
  }

  /// What is written to stderr; the status must be that of a wrong command line.
  std::string refused(const Words& arguments) {
    Captured errors(stderr);
    const int status = parser.run(arguments);
    const std::string text = errors.text();
    CHECK(status == hocket::program::exit_usage);
    CHECK(ran.empty());
    return text;
  }

  std::string printed(const Words& arguments) {
    Captured output(stdout);
    const int status = parser.run(arguments);
    const std::string text = output.text();
    CHECK(status == 0);
    CHECK(ran.empty());
    return text;
  }
};

std::string refused(const Words& arguments) { return Program().refused(arguments); }

}  // namespace

TEST_CASE("options are read in every way they are written") {
  Program program;
  CHECK(program.parser.run({"sums", "-n", "3", "--size=9", "--maybe", "5", "--ratio", "2.5e1",
                            "--time=1.5m", "--json", "--no-tags", "--names", "a,b", "--names=c"}) ==
        0);
  CHECK(program.ran == "sums");
  CHECK(program.count == 3);
  CHECK(program.size == 9);
  CHECK(program.maybe == 5U);
  CHECK(program.ratio == 25);
  CHECK(program.time == 90s);
  CHECK(program.json);
  CHECK_FALSE(program.tags);
  CHECK(program.names == Words{"a", "b", "c"});
}

TEST_CASE("what is not given keeps its default, and short options take their value at once") {
  Program program;
  CHECK(program.parser.run({"sums", "-n5", "--json=off", "--tags=1"}) == 0);
  CHECK(program.count == 5);
  CHECK(program.names == Words{"x"});
  CHECK_FALSE(program.json);
  CHECK(program.tags);
}

TEST_CASE("a list takes several words only where no others are awaited") {
  Program program;
  CHECK(program.parser.run({"sums", "--names", "a", "b,c", "--json"}) == 0);
  CHECK(program.names == Words{"a", "b", "c"});
  Program other;
  CHECK(other.parser.run({"run", "-x", "a", "b", "c"}) == 0);
  CHECK(other.more == Words{"a"});
  CHECK(other.words == Words{"b", "c"});
}

TEST_CASE("the words of another program are left alone") {
  const auto words = [](const Words& arguments) {
    Program program;
    CHECK(program.parser.run(arguments) == 0);
    CHECK(program.ran == "run");
    return program.words;
  };
  CHECK(words({"run", "--json", "ls", "--json", "-x"}) == Words{"ls", "--json", "-x"});
  CHECK(words({"run", "--", "--json", "--", "-x"}) == Words{"--json", "--", "-x"});
  CHECK(words({"run", "ls", "--help"}) == Words{"ls", "--help"});
  CHECK(words({"run", "-x", "-1", "--json"}).empty());
  CHECK(words({"run", ""}) == Words{""});
  CHECK(refused({"run", "-4", "ls"}).starts_with("prog run: I don't know -4"));
  CHECK(refused({"run", "-x", "", "ls"}) ==
        "prog run: -x: its value is empty\nhint: `prog run --help` shows what it takes\n");
}

TEST_CASE("words go where they are awaited, and options may be those of the parent") {
  Program program;
  CHECK(program.parser.run({"store", "--at", "a", "set", "k", "v", "w"}) == 0);
  CHECK(program.ran == "set");
  CHECK((program.first == "k" && program.more == Words{"v", "w"} && program.at == "a"));
  Program negative;
  CHECK(negative.parser.run({"store", "set", "k", "-5", "-.5"}) == 0);
  CHECK(negative.more == Words{"-5", "-.5"});
  Program other;
  CHECK(other.parser.run({"store", "set", "k", "--at=b", "--", "-v", "--"}) == 0);
  CHECK((other.first == "k" && other.more == Words{"-v", "--"} && other.at == "b"));
}

TEST_CASE("what is wrong is refused with a reason and a hint") {
  const std::pair<Words, const char*> all[] = {
      {{}, "prog: a subcommand is required"},
      {{"store"}, "prog store: a subcommand is required"},
      {{"sum"}, "prog: I don't know sum; did you mean sums?"},
      {{"xyzxyz"}, "prog: I don't know xyzxyz"},
      {{"--versio"}, "prog: I don't know --versio; did you mean --version?"},
      {{"sums", "--version"}, "prog sums: I don't know --version"},
      {{"sums", "more"}, "prog sums: I don't know more"},
      {{"sums", "--jsn=1"}, "prog sums: I don't know --jsn; did you mean --json?"},
      {{"sums", "--no-tag"}, "prog sums: I don't know --no-tag; did you mean --no-tags?"},
      {{"sums", "-q"}, "prog sums: I don't know -q"},
      {{"sums", "-n"}, "prog sums: --count: its value is missing"},
      {{"sums", "-n", "--json"}, "prog sums: --count: its value is missing"},
      {{"sums", "-n", "0"}, "prog sums: --count: 0 is not a whole number from 1 to 9"},
      {{"sums", "-n", "-1"}, "prog sums: --count: -1 is not a whole number from 1 to 9"},
      {{"sums", "-n=1"}, "prog sums: --count: =1 is not a whole number from 1 to 9"},
      {{"sums", "-n", "x"}, "prog sums: --count: x is not a whole number from 1 to 9"},
      {{"sums", "--size", "-1"},
       "prog sums: --size: -1 is not a whole number from 0 to 2147483647"},
      {{"sums", "--maybe", "4294967296"}, "prog sums: --maybe: 4294967296 is not a whole number"},
      {{"sums", "--maybe", "-1"}, "prog sums: --maybe: -1 is not a whole number from 0 to"},
      {{"sums", "--ratio", "1x"}, "prog sums: --ratio: 1x is not a number"},
      {{"sums", "--time", "soon"}, "prog sums: --time: soon is not a duration such as 5s or 500ms"},
      {{"sums", "--json=7"}, "prog sums: --json: 7 is not a boolean: 1 or 0"},
      {{"sums", "--shape", "oval"}, "prog sums: --shape: oval is none of round, square"},
      {{"sums", "--json", "--shape", "round"}, "prog sums: --json excludes --shape"},
      {{"sums", "-n", "1", "--count", "2"}, "prog sums: --count: it is given twice"},
      {{"store", "set"}, "prog store set: key is required"},
      {{"store", "set", "k", "-v"},
       "prog store set: I don't know -v\nhint: behind `--` it is a value\n"},
      {{"store", "set", "--att", "x"}, "prog store set: I don't know --att; did you mean --at?"},
      {{"help", "sum"}, "prog: I don't know sum; did you mean sums?"},
      {{"help", "sums", "more"}, "prog sums: I don't know more"},
  };
  for (const auto& [words, why] : all) {
    const std::string told = refused(words);
    INFO(told);
    CHECK(told.starts_with(why));
    CHECK(told.find("\nhint: `prog") != told.npos);
  }
}

TEST_CASE("what a command refuses itself is told in the same way") {
  Program program;
  program.sums->on_run([]() -> int { throw UsageError("--count", "it is odd"); });
  CHECK(program.refused({"sums"}) ==
        "prog sums: --count: it is odd\nhint: `prog sums --help` shows what it takes\n");
}

TEST_CASE("help shows everything that a command takes") {
  CHECK(Program().printed({"--version"}) == "prog 1.2\n");
  CHECK(Program().printed({"--help"}) ==
        "Does things.\n"
        "Usage: prog [OPTIONS] SUBCOMMAND\n\n"
        "Options:\n"
        "  -h,--help                   Show this help\n"
        "  --version                   Show the version\n\n"
        "Subcommands:\n"
        "  sums                        Adds numbers\n"
        "  run                         Runs a program\n"
        "  store                       Asks a store\n");
  const std::string sums = Program().printed({"sums", "--help"});
  CHECK(sums ==
        "Adds numbers\n"
        "Usage: prog sums [OPTIONS]\n\n"
        "Options:\n"
        "  -h,--help                   Show this help\n"
        "  -n,--count INT in [1 - 9]=4 How many\n"
        "  --size UINT                 How large\n"
        "  --maybe UINT\n"
        "  --ratio FLOAT=0.5           Of two\n"
        "  --time DURATION=5s          To wait\n"
        "  --json Excludes: --shape    As JSON\n"
        "  --tags,--no-tags            With tags\n"
        "  --shape {round,square} Excludes: --json\n"
        "                              Of it\n"
        "  --names TEXT=[x] ...        Whose\n");
  CHECK(Program().printed({"help", "sums"}) == sums);
  CHECK(Program().printed({"sums", "-n", "2", "-h"}) == sums);
  CHECK(Program().printed({"help", "store", "set"}) ==
        "Sets a value\n"
        "Usage: prog store set [OPTIONS] key [values...]\n\n"
        "Positionals:\n"
        "  key TEXT REQUIRED           Its name\n"
        "  values TEXT ...\n\n"
        "Options:\n"
        "  -h,--help                   Show this help\n\n"
        "A footer.\n");
}
