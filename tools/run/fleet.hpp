// The agents of a job on several hosts.
#pragma once

#include <memory>
#include <vector>

#include "hocket/status.hpp"

#include "run/conductor.hpp"
#include "run/layout.hpp"
#include "run/options.hpp"
#include "run/remote_node.hpp"

namespace hocket::run {

class Fleet {
 public:
  /// Borrowed until it is gone.
  struct Needs {
    const Options& options;
    const Layout& layout;
    const wire::Credentials& credentials;
    const Dispositions& dispositions;
  };

  Fleet(Loop& loop, Conductor& conductor, Output& output, Needs needs)
      : loop_(loop), conductor_(conductor), output_(output), needs_(needs) {}

  /// Starts an agent on every host and waits until all have answered: then the conductor has them
  /// as its nodes. A failure names every host that did not answer, and no rank has been started.
  [[nodiscard]] Status gather();

 private:
  [[nodiscard]] Status start_agents();
  [[nodiscard]] bool has_failed() const;
  [[nodiscard]] Status missing() const;

  Loop& loop_;
  Conductor& conductor_;
  Output& output_;
  Needs needs_;
  std::vector<std::unique_ptr<RemoteNode>> nodes_;
};

}  // namespace hocket::run
