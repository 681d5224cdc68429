// Who can end a job from outside: the user, by signals, and the death of the guardian.
#pragma once

#include "base/fd.hpp"
#include "run/loop.hpp"

namespace hocket::run {

class UserListener {
 public:
  UserListener() = default;
  UserListener(const UserListener&) = delete;
  UserListener& operator=(const UserListener&) = delete;
  virtual ~UserListener() = default;

  virtual void on_signal(int signal) = 0;
  virtual void on_guardian_death() = 0;
};

class User final : public Watcher {
 public:
  /// `lifeline`: as of the guardian.
  User(Loop& loop, UserListener& listener, Fd lifeline);
  ~User() override;

  [[nodiscard]] pollfd wanted() const override { return {lifeline_.get(), POLLIN, 0}; }
  void ready() override;

 private:
  Loop& loop_;
  UserListener& listener_;
  Fd lifeline_;
};

}  // namespace hocket::run
