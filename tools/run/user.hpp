// Who can end a job from outside: the user, by signals, and the death of the guardian.
#pragma once

#include "base/fd.hpp"
#include "run/loop.hpp"
#include "run/signals.hpp"

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

class User {
 public:
  User(Loop& loop, UserListener& listener, Fd lifeline);
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  ~User() = default;

 private:
  class Signals final : public Watcher {
   public:
    Signals(Loop& loop, UserListener& listener);
    ~Signals() override;
    [[nodiscard]] pollfd wanted() const override { return {queue_.descriptor(), POLLIN, 0}; }
    void ready() override;

   private:
    Loop& loop_;
    UserListener& listener_;
    SignalQueue queue_;
  };
  class Lifeline final : public Watcher {
   public:
    Lifeline(Loop& loop, UserListener& listener, Fd fd);
    ~Lifeline() override;
    [[nodiscard]] pollfd wanted() const override { return {fd_.get(), POLLIN, 0}; }
    void ready() override;

   private:
    Loop& loop_;
    UserListener& listener_;
    Fd fd_;
  };

  Signals signals_;
  Lifeline lifeline_;
};

}  // namespace hocket::run
