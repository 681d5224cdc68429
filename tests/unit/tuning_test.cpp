#include "comm/tuning.hpp"

#include <fstream>
#include <string>

#include "base/limits.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using hocket::Config;
using hocket::read_tuning;
using hocket::StatusCode;

namespace {

const hocket::choose::Network base = hocket::choose::find_preset("ethernet-1g").value();

Config config_of(const std::string& algorithm, const std::string& file) {
  const std::string entries[] = {"HOCKET_ALGORITHM=" + algorithm, "HOCKET_TUNING_FILE=" + file};
  const char* const environment[] = {entries[0].c_str(), entries[1].c_str(), nullptr};
  return Config(environment);
}

std::string write(const hocket::testing::TemporaryFolder& folder, const std::string& name,
                  const std::string& text) {
  std::string path = folder.path() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("with no variable set the network stays and there are no rules") {
  const auto tuning = read_tuning(config_of("", ""), base).value();
  CHECK(tuning.network == base);
  CHECK(tuning.rules.empty());
}

TEST_CASE("the variable's rules go before the file's, and another file before the variable's") {
  const hocket::testing::TemporaryFolder folder;
  const std::string first =
      write(folder, "first", "hocket-tuning 1\nnetwork.latency=1ms\nall_reduce=circulant");
  const std::string second = write(folder, "second", "hocket-tuning 1\nbarrier=dissemination");
  const Config config = config_of("all_reduce=ring", first);
  const auto tuning = read_tuning(config, base).value();
  CHECK(tuning.network.latency == 1e-3);
  REQUIRE(tuning.rules.size() == 2);
  CHECK(tuning.rules[0].source == "HOCKET_ALGORITHM");
  CHECK(tuning.rules[1].source == first + ", line 3");
  const auto other = read_tuning(config, base, second).value();
  CHECK(other.network == base);
  CHECK(other.rules.back().text == "barrier=dissemination");
}

TEST_CASE("what can't be read is a failure and not left out") {
  const hocket::testing::TemporaryFolder folder;
  const auto status = [](const Config& config) { return read_tuning(config, base).status(); };
  CHECK(status(config_of("rign", "")).to_string().find("HOCKET_ALGORITHM: ") != std::string::npos);
  CHECK(status(config_of("rign", "")).hint() == "did you mean ring?");
  CHECK(status(config_of(std::string(5000, ' '), "")).code() == StatusCode::limit_exceeded);
  CHECK(status(config_of("", folder.path() + "/none")).code() == StatusCode::not_found);
  CHECK(status(config_of("", folder.path())).code() == StatusCode::system_error);
  const std::string wrong = write(folder, "wrong", "hocket-tuning 1\nringg\n");
  CHECK(status(config_of("", wrong)).to_string().find(wrong + ", line 2: ") != std::string::npos);
  const std::string large =
      write(folder, "large", std::string(hocket::limits::tuning_file_bytes_max + 1, '\n'));
  CHECK(status(config_of("", large)).code() == StatusCode::limit_exceeded);
}
