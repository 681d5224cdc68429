// Tests whether other processes of this user can open this one's descriptors.
#pragma once

namespace hocket::shm {

/// 0 if they could, else the system's error number: /proc may be missing or hidden, a security
/// module may deny it, or this process may have hidden itself (prctl(PR_SET_DUMPABLE)). A
/// short-lived process tries it, at the cost of a few tens of microseconds; this process gets no
/// signal of its end, and no child that its own waitpid() would find.
[[nodiscard]] int try_from_outside(int descriptor) noexcept;

}  // namespace hocket::shm
