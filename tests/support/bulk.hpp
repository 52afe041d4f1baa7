#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "support/socket.hpp"

/// Much data, and what it costs a process: bytes that are known by their position, so that one who
/// receives them can check them without keeping them.
namespace idem::test {

inline constexpr std::uint64_t mebibyte = 1024UL * 1024;

/// A sanitizer keeps freed memory and is slow: sizes shrink, and memory says nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool sanitized = false;
#endif

/// The bytes of the pattern from `position` on; `bytes` is at most 256 KiB.
std::string_view pattern(std::uint64_t position, std::size_t bytes);
std::string pattern_text(std::size_t bytes);

/// Sends that many bytes of the pattern from its beginning.
bool send_pattern(Socket& socket, std::uint64_t bytes);

/// Reads the rest of a pattern after `seen` bytes of it arrived otherwise: true when `total` have
/// arrived and each was right.
bool receive_pattern(Socket& socket, std::string_view seen, std::uint64_t total);

/// Memory of a process that no file stands behind (RssAnon of proc(5)).
std::uint64_t anonymous_bytes(pid_t pid);

/// How often the threads of this name have waited for something (voluntary_ctxt_switches of
/// proc(5)): once for each job, at least. 0 where there is none.
std::uint64_t waits_of(pid_t pid, std::string_view thread);

/// Files without a name that a process holds open or mapped and that lay in this directory.
int unlinked_files(pid_t pid, std::string_view directory);

}  // namespace idem::test
