#include "run/peers.hpp"

#include <utility>

#include <fmt/format.h>

#include "run/signals.hpp"

namespace hocket::run {

Peers::Peers(Loop& loop, NodeListener& listener, const Meeting& meeting, int node, CrewOptions crew)
    : listener_(listener),
      node_(node),
      crew_(loop, *this, std::move(crew)),
      mail_(loop, *this, meeting.store, node, static_cast<int>(meeting.hosts.size())) {}

void Peers::start(const Orders& orders) {
  is_told_ = false;
  is_over_ = false;
  mail_.start();
  if (!is_cut_off_) crew_.start(orders);  // else the mail says so again
}

void Peers::signal(int signal) {
  if (crew_.is_busy()) crew_.signal(signal);
  if (!ends_the_job(signal)) return;
  tell_why(128 + signal, fmt::format("its launcher was told to end by {}", signal_name(signal)));
}

void Peers::kill_after(Duration grace) {
  if (crew_.is_busy()) crew_.kill_after(grace);
}

void Peers::tell_why(int status, std::string_view text) {
  if (std::exchange(is_told_, true)) return;  // this node's listener is who says so
  mail_.post({.node = node_, .end = {.rank = -1, .status = status, .text = std::string(text)}});
}

bool Peers::wants(int, Stream stream) const { return listener_.wants(node_, stream); }

void Peers::on_output(int, int rank, Stream stream, std::string_view bytes) {
  listener_.on_output(node_, rank, stream, bytes);
}

/// The listener hears of it when it is known to be the first of all nodes.
void Peers::on_rank_end(int, const RankEnd& end) {
  if (end.status != 0 && !is_told_) mail_.post({.node = node_, .end = end});
}

void Peers::on_lost(int, std::string_view) {}

void Peers::on_attempt_end(int) {
  if (is_cut_off_) return on_over();
  mail_.post_end();
}

void Peers::on_end_of_all(const Reason& reason) {
  if (!std::exchange(is_told_, true)) listener_.on_rank_end(reason.node, reason.end);
}

void Peers::on_over() {
  if (!std::exchange(is_over_, true)) listener_.on_attempt_end(node_);
}

void Peers::on_cut_off(const Status& why) {
  is_cut_off_ = true;
  if (is_over_) return;
  on_end_of_all({.node = 0,
                 .end = {.rank = -1,
                         .status = 1,
                         .text = fmt::format("its launcher is gone: {}", why.to_string())}});
  if (!crew_.is_busy()) on_over();
}

}  // namespace hocket::run
