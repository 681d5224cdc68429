// The monitor's part that lives on the reactor's thread: the lines to other ranks, what is heard
// over them, and what follows from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/steady_timer.hpp>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "health/monitor.hpp"
#include "health/question.hpp"
#include "health/silence.hpp"
#include "health/story.hpp"
#include "health/watched_groups.hpp"
#include "link/door.hpp"
#include "link/line.hpp"
#include "link/reactor.hpp"
#include "net/socket.hpp"

namespace hocket::health {

/// Borrows what it is made of. Everything but the constructor and the destructor on the reactor's
/// thread; the destructor behind close(), when nothing that was posted before can follow.
class Watch final : public link::LineHost, private StoryHost {
 public:
  struct Peer {
    std::vector<net::Address> addresses = {};
    std::string instance = {};
    std::string process = {};
  };

  Watch(const MonitorOptions& options, link::Reactor& reactor, const link::Terms& terms,
        WatchedGroups& wards, std::string instance, std::vector<Fd> listeners);

  void open();
  /// Begins to dial the others.
  void connect(std::vector<Peer> peers);
  /// This rank has found it out.
  void note(Notice notice);
  /// The same, of a communicator whose operations are ended when the others have been told.
  void note_and_end(const Notice& notice);
  /// Sends it on its way, or lets this rank compare.
  void ask(const Question& question);
  /// If that rank turns out to have died: this is an operation in which it was noticed.
  void mention(std::uint32_t rank, const std::string& operation);
  /// Nobody asks for this communicator any more.
  void forget(std::uint64_t communicator) { story_.forget(communicator); }
  /// With a farewell, if there is memory for it.
  void close() noexcept;

 private:
  /// Over one of a rank's addresses.
  struct Way {
    std::shared_ptr<link::Line> line = {};
    Deadline next_dial = {};
    Duration pause = {};
    bool ends_alone = false;  // the other end said so: its process lives
    /// The other end has said something, and so knows that the line is ready. If it leaves before,
    /// it can't say so, and its end is no death.
    bool is_known_there = false;

    [[nodiscard]] bool is_ready() const noexcept { return line != nullptr && line->is_ready(); }
    /// Nothing will come of it any more.
    [[nodiscard]] bool is_over() const noexcept { return line == nullptr && next_dial.is_never(); }
  };
  enum class State : std::uint8_t { here, left, lost };
  struct Contact {
    Peer peer = {};
    State state = State::here;
    std::vector<Way> ways = {};
    bool was_ready = false;
    bool is_elsewhere = false;            // on another host
    std::optional<Silence> silence = {};  // once there is a line, or the beginning of one
  };
  /// At most two; without memory of the heap, as beats go on all the time.
  class Neighbours {
   public:
    void add(std::uint32_t rank) noexcept {
      if (count_ == 0 || ranks_[0] != rank) ranks_[count_++] = rank;
    }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] const std::uint32_t* begin() const noexcept { return ranks_.data(); }
    [[nodiscard]] const std::uint32_t* end() const noexcept { return ranks_.data() + count_; }

   private:
    std::array<std::uint32_t, 2> ranks_ = {};
    std::size_t count_ = 0;
  };
  /// Of a line.
  struct Place {
    std::uint32_t rank = 0;
    std::uint32_t way = 0;
  };

  [[nodiscard]] Result<std::string> on_hello(link::Line& line, std::string_view hello) override;
  [[nodiscard]] Status on_answer(link::Line& line, std::string_view answer) override;
  void on_message(link::Line& line, std::string_view message) override;
  void on_end(link::Line& line, const Status& why) override;

  [[nodiscard]] bool dials(std::uint32_t other) const noexcept;
  [[nodiscard]] bool is_dialled_by(std::uint32_t other) const noexcept;
  /// The nearest with a line on either side.
  [[nodiscard]] Neighbours neighbours() const noexcept;
  [[nodiscard]] std::optional<Place> find(const link::Line& line) const;
  [[nodiscard]] std::string name_of(std::uint32_t rank) const;

  void dial(const Place& place, Instant now);
  void dial_again(const Place& place, const Status& why);
  [[nodiscard]] Instant dial_those_due(Instant now);
  void make_ready(const Place& place);
  void hang_up(Contact& contact, std::string_view last_word) noexcept;
  void cut_lines() noexcept;
  void tick();
  [[nodiscard]] Instant work_until(Instant now);
  void arm_ticks(Instant next);
  void send_beats();
  [[nodiscard]] Instant listen_for_silence(Instant now);
  void call_everybody(Instant now);
  [[nodiscard]] bool is_cut_off(Duration silence_elsewhere) const;

  [[nodiscard]] bool was_heard(Instant now) const noexcept;
  [[nodiscard]] Notice notice_of(Finding finding, std::uint32_t culprit) const;
  void note_silence(std::uint32_t rank, Duration lasted);
  void note_cut_off(Duration lasted);
  void note_death(std::uint32_t rank, const Status& why);
  void take_notice(const Notice& notice, std::optional<std::uint32_t> from);
  void spread(const Notice& notice, std::optional<std::uint32_t> except) override;
  void spread_decision(const Notice& cause, std::optional<std::uint32_t> except) override;
  void send_to_all(std::string_view message, std::optional<std::uint32_t> except);
  void part_from(std::uint32_t rank) override;
  [[nodiscard]] bool is_here(std::uint32_t rank) const override;

  const MonitorOptions& options_;
  link::Reactor& reactor_;
  const link::Terms& terms_;
  WatchedGroups& groups_;
  const std::string instance_;
  const Duration beat_;
  std::vector<std::string> hosts_;                  // by which others reach this one
  std::vector<Contact> contacts_;                   // by rank
  std::vector<std::unique_ptr<link::Door>> doors_;  // one for each of our addresses
  asio::steady_timer tick_timer_;
  std::map<const link::Line*, Place> places_;
  std::string question_message_;  // kept, because questions are asked in the midst of operations
  Silence silence_elsewhere_;     // since a rank of another host was heard
  Instant next_beat_ = {};
  Instant was_late_ = {};  // with a beat, as this process was stopped or got no processor
  Story story_;
  bool is_closed_ = false;
};

}  // namespace hocket::health
