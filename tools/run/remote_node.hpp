// A host of several, seen from the head: the remote shell and the agent behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "net/endpoint.hpp"
#include "run/channel.hpp"
#include "run/loop.hpp"
#include "run/node.hpp"
#include "run/output.hpp"
#include "run/process.hpp"
#include "run/signals.hpp"
#include "wire/credentials.hpp"

namespace hocket::run {

/// What an agent is told once.
struct Joining {
  Duration grace = std::chrono::seconds(5);
  std::string folder = {};                    // that the ranks start in
  std::vector<std::string> environment = {};  // beside what the host has itself
  wire::Credentials credentials = {};
  std::optional<net::Endpoint> serve = {};  // where it is to serve the job's store
};

struct RemoteNodeOptions {
  int node = 0;
  std::string host = {};
  std::vector<std::string> command = {};  // that starts the agent
  Dispositions dispositions = {};
  int input = -1;  // what rank 0 reads, on the node that has it
};

class RemoteNode final : public Node, private ChannelListener {
 public:
  /// Starts the remote shell.
  static Result<std::unique_ptr<RemoteNode>> start(Loop& loop, NodeListener& listener,
                                                   Output& output, RemoteNodeOptions options);
  ~RemoteNode() override;

  void join(const Joining& joining);
  /// Whether the agent has answered, and is well.
  [[nodiscard]] bool is_ready() const noexcept { return is_ready_; }
  /// Why it never will.
  [[nodiscard]] const std::optional<std::string>& failure() const noexcept { return failure_; }
  // Once it is ready: the port of the store it serves, and one that is free.
  [[nodiscard]] std::uint16_t store_port() const noexcept { return store_port_; }
  [[nodiscard]] std::uint16_t master_port() const noexcept { return master_port_; }

  void start(const Orders& orders) override;
  void signal(int signal) override;
  void kill_after(Duration grace) override;

 private:
  /// What the remote shell itself has to say.
  class Complaints final : public Watcher {
   public:
    Complaints(RemoteNode& node, Fd fd);
    ~Complaints() override;
    [[nodiscard]] pollfd wanted() const override;
    void ready() override;
    /// What is there already.
    void read_rest();
    [[nodiscard]] std::string text() const;

   private:
    RemoteNode& node_;
    Fd fd_;
    std::string text_;
  };
  /// What is typed here, for rank 0.
  class Input final : public Watcher {
   public:
    Input(RemoteNode& node, int descriptor);
    ~Input() override;
    [[nodiscard]] pollfd wanted() const override;
    void ready() override;
    bool is_wanted = false;

   private:
    RemoteNode& node_;
    int descriptor_;
  };
  /// Tells the agent what of its output has been printed.
  class Printed final : public Watcher {
   public:
    explicit Printed(RemoteNode& node);
    ~Printed() override;
    [[nodiscard]] Deadline deadline() const override;
    void due() override;
    std::size_t counts[2] = {};

   private:
    RemoteNode& node_;
  };

  RemoteNode(Loop& loop, NodeListener& listener, Output& output, RemoteNodeOptions options,
             Process process, Fd to);
  void on_message(const Json& message, std::string_view data) override;
  void on_closed(std::string_view why) override;
  void lose(const std::string& why);

  Loop& loop_;
  NodeListener& listener_;
  Output& output_;
  RemoteNodeOptions options_;
  pid_t shell_;
  Channel channel_;
  Complaints complaints_;
  Input input_;
  Printed printed_;
  bool is_ready_ = false;
  std::optional<std::string> failure_;
  std::uint16_t store_port_ = 0;
  std::uint16_t master_port_ = 0;
};

}  // namespace hocket::run
