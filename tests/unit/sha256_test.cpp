#include "wire/sha256.hpp"

#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"

using hocket::as_text;
using hocket::hex;
using hocket::wire::equal_in_constant_time;
using hocket::wire::hmac_sha256;
using hocket::wire::Sha256;
using hocket::wire::sha256;

namespace {

/// n bytes 0, 1, 2, …
std::string counting(std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text += static_cast<char>(i);
  return text;
}

}  // namespace

TEST_CASE("the examples of FIPS 180-4") {
  REQUIRE(hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  REQUIRE(hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  REQUIRE(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  REQUIRE(hex(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
                     "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu")) ==
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

TEST_CASE("a million times a, in pieces of every kind") {
  constexpr std::size_t total = 1'000'000;
  for (const unsigned piece : {1u, 63u, 64u, 65u, 1000u, 1'000'000u}) {
    const std::string text(piece, 'a');
    Sha256 hash;
    for (std::size_t done = 0; done < total; done += piece) {
      hash.update(std::string_view(text).substr(0, total - done));
    }
    REQUIRE(hex(hash.finish()) ==
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST_CASE("lengths around the end of a block") {
  // What coreutils' sha256sum gives of the bytes 0, 1, 2, …
  struct Row {
    std::size_t bytes;
    std::string_view digest;
  };
  static constexpr Row rows[] = {
      {55, "463eb28e72f82e0a96c0a4cc53690c571281131f672aa229e0d45ae59b598b59"},
      {56, "da2ae4d6b36748f2a318f23e7ab1dfdf45acdc9d049bd80e59de82a60895f562"},
      {57, "2fe741af801cc238602ac0ec6a7b0c3a8a87c7fc7d7f02a3fe03d1c12eac4d8f"},
      {63, "29af2686fd53374a36b0846694cc342177e428d1647515f078784d69cdb9e488"},
      {64, "fdeab9acf3710362bd2658cdc9a29e8f9c757fcf9811603a8c447cd1d9151108"},
      {65, "4bfd2c8b6f1eec7a2afeb48b934ee4b2694182027e6d0fc075074f2fabb31781"},
      {119, "da18797ed7c3a777f0847f429724a2d8cd5138e6ed2895c3fa1a6d39d18f7ec6"},
      {120, "f52b23db1fbb6ded89ef42a23ce0c8922c45f25c50b568a93bf1c075420bbb7c"},
      {127, "92ca0fa6651ee2f97b884b7246a562fa71250fedefe5ebf270d31c546bfea976"},
      {128, "471fb943aa23c511f6f72f8d1652d9c880cfa392ad80503120547703e56a2be5"},
      {129, "5099c6a56203f9687f7d33f4bfdf576d31dc91f6b695ecea38b2770c87631135"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.bytes);
    REQUIRE(hex(sha256(counting(row.bytes))) == row.digest);
  }
}

TEST_CASE("it does not matter where a message is split") {
  for (std::size_t size = 0; size <= 130; ++size) {
    const std::string text = counting(size);
    const auto whole = sha256(text);
    for (std::size_t split = 0; split <= size; ++split) {
      Sha256 hash;
      hash.update(std::string_view(text).substr(0, split));
      hash.update("");
      hash.update(std::string_view(text).substr(split));
      REQUIRE(hash.finish() == whole);
    }
  }
}

TEST_CASE("the examples of RFC 4231") {
  struct Row {
    std::string key;
    std::string message;
    std::string_view digest;
  };
  const std::string long_key(131, '\xaa');
  const Row rows[] = {
      {std::string(20, '\x0b'), "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counting(26).substr(1), std::string(50, '\xcd'),
       "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {long_key, "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {long_key,
       "This is a test using a larger than block-size key and a larger than block-size data. The "
       "key needs to be hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const Row& row : rows) REQUIRE(hex(hmac_sha256(row.key, row.message)) == row.digest);
}

TEST_CASE("a key of one block is used as it is, a longer one is hashed") {
  const std::string block_key = counting(64);
  const std::string longer_key = counting(65);
  REQUIRE(hmac_sha256(block_key, "x") != hmac_sha256(as_text(sha256(block_key)), "x"));
  REQUIRE(hmac_sha256(longer_key, "x") == hmac_sha256(as_text(sha256(longer_key)), "x"));
}

TEST_CASE("a difference of one bit anywhere is seen") {
  const std::string text = counting(64);
  REQUIRE(equal_in_constant_time("", ""));
  REQUIRE(equal_in_constant_time(text, std::string(text)));
  REQUIRE_FALSE(equal_in_constant_time(text, counting(63)));
  REQUIRE_FALSE(equal_in_constant_time(text, counting(65)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      REQUIRE_FALSE(equal_in_constant_time(text, other));
    }
  }
}
