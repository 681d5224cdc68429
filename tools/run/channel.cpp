#include "run/channel.hpp"

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "run/process.hpp"

namespace hocket::run {
namespace {

constexpr std::size_t line_bytes_max = 64 << 20;  // a command line with its environment is shorter
constexpr std::size_t data_bytes_max = 1 << 20;   // a message has 64 KiB at most
constexpr std::size_t noise_bytes_max = 1 << 20;  // of a login shell

/// Takes a line off the front.
std::optional<std::string> take_line(std::string& bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string::npos) return {};
  std::string line = bytes.substr(0, end);
  bytes.erase(0, end + 1);
  return line;
}

}  // namespace

std::string to_text(std::string_view bytes) {
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte < 0x80) {
      text += each;
    } else {
      text += static_cast<char>(0xc0U | byte >> 6U);
      text += static_cast<char>(0x80U | (byte & 0x3fU));
    }
  }
  return text;
}

std::string to_bytes(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80 || i + 1 == text.size()) {
      bytes += text[i];
    } else {
      const auto second = static_cast<unsigned char>(text[++i]);
      bytes += static_cast<char>((first & 0x03U) << 6U | (second & 0x3fU));
    }
  }
  return bytes;
}

Json to_texts(const std::vector<std::string>& words) {
  Json texts = Json::array();
  for (const std::string& word : words) texts.push_back(to_text(word));
  return texts;
}

std::vector<std::string> to_words(const Json& texts) {
  std::vector<std::string> words;
  for (const Json& text : texts.items()) words.push_back(to_bytes(text.get<std::string>()));
  return words;
}

Channel::Channel(Loop& loop, ChannelListener& listener, Fd from, Fd to, bool greets)
    : loop_(loop),
      listener_(listener),
      reader_(*this, std::move(from)),
      writer_(*this, std::move(to), {{greets ? "is" : "do", "alive"}}) {
  reader_.is_greeted = greets;
  if (greets) writer_.write(fmt::format("\n{}\n", greeting));
}

void Channel::send(const Json& message, std::string_view data) {
  if (!is_open_) return;
  writer_.write(message.dump() + '\n');
  writer_.write(data);
}

void Channel::close(std::string_view why) {
  if (!std::exchange(is_open_, false)) return;
  reader_.close();
  writer_.close();
  listener_.on_closed(why);
}

Channel::Reader::Reader(Channel& channel, Fd fd) : channel_(channel), fd_(std::move(fd)) {
  fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
  silence_ = Deadline::after(channel_.loop_.clock(), silence_max);
  channel_.loop_.add(*this);
}

Channel::Reader::~Reader() { channel_.loop_.remove(*this); }

void Channel::Reader::ready() {
  std::array<char, 64 << 10> chunk;
  const ssize_t got = ::read(fd_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return channel_.close(got == 0 ? "the connection has ended" : error_text(errno));
  silence_ = Deadline::after(channel_.loop_.clock(), silence_max);
  bytes_.append(chunk.data(), static_cast<std::size_t>(got));
  try {
    while (channel_.is_open_ && read_message()) continue;
  } catch (const program::JsonError& error) {
    channel_.close(fmt::format("it sent what is no message: {}", error.what()));
  }
}

void Channel::Reader::due() {
  silence_ = Deadline::never();
  channel_.close(fmt::format("nothing was heard of it for {} s", silence_max.count()));
}

bool Channel::Reader::read_message() {
  if (!is_greeted) {
    const auto line = take_line(bytes_);
    if (!line && bytes_.size() > noise_bytes_max) channel_.close("it doesn't greet");
    is_greeted = line == greeting;
    if (line && !is_greeted && line->starts_with(greeting_of_all_versions)) {
      channel_.close(fmt::format("it is another version: it greets as \"{}\", not as \"{}\"", *line,
                                 greeting));
    }
    return line.has_value();
  }
  const std::size_t end = bytes_.find('\n');
  if (end == std::string::npos) {
    if (bytes_.size() > line_bytes_max) channel_.close("it sent a line without an end");
    return false;
  }
  const Json message = Json::parse(std::string_view(bytes_).substr(0, end));
  const auto data_bytes = message.value("bytes", std::size_t{0});
  if (data_bytes > data_bytes_max) {
    channel_.close(
        fmt::format("it announced {} bytes of data, more than a message has", data_bytes));
    return false;
  }
  const std::size_t size = end + 1 + data_bytes;
  if (bytes_.size() < size) return false;
  const std::string data = bytes_.substr(end + 1, size - end - 1);
  bytes_.erase(0, size);
  channel_.listener_.on_message(message, data);
  return true;
}

Channel::Writer::Writer(Channel& channel, Fd fd, const Json& alive)
    : channel_(channel), fd_(std::move(fd)), alive_(alive.dump() + '\n') {
  fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
  alive_at_ = Deadline::after(channel_.loop_.clock(), alive_interval);
  channel_.loop_.add(*this);
}

Channel::Writer::~Writer() { channel_.loop_.remove(*this); }

pollfd Channel::Writer::wanted() const { return {bytes_.empty() ? -1 : fd_.get(), POLLOUT, 0}; }

void Channel::Writer::ready() {
  const ssize_t put = ::write(fd_.get(), bytes_.data(), bytes_.size());
  if (put > 0) bytes_.erase(0, static_cast<std::size_t>(put));
  if (put < 0 && errno != EAGAIN && errno != EINTR) {
    // The reader finds what the other side said last.
    fd_.reset();
    bytes_.clear();
  }
}

void Channel::Writer::due() {
  alive_at_ = Deadline::after(channel_.loop_.clock(), alive_interval);
  if (bytes_.empty() && fd_) write(alive_);
}

void Channel::Writer::close() noexcept {
  fd_.reset();
  bytes_.clear();
  alive_at_ = Deadline::never();
}

}  // namespace hocket::run
