#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace idem::cli {

/// The users (their numbers) whose sockets listen on this TCP port of this machine, whatever
/// address they are bound to: proc(5), net/tcp and net/tcp6. Empty: nobody does, or the kernel does
/// not say.
std::set<std::uint32_t> listeners_on(const std::string& port);

}  // namespace idem::cli
