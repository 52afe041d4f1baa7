#include "support/bulk.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

namespace idem::test {
namespace {

// A prime length, so that no power of two of bytes lost or doubled goes unseen.
constexpr std::size_t period = 65'537;
constexpr std::size_t longest = 256UL * 1024;

const std::string& repeated() {
  static const std::string text = [] {
    std::mt19937 random(20'091);
    std::string once(period, '\0');
    for (auto& byte : once) byte = static_cast<char>(random());
    std::string all;
    while (all.size() < period + longest) all += once;
    return all;
  }();
  return text;
}

}  // namespace

std::string_view pattern(std::uint64_t position, std::size_t bytes) {
  return std::string_view(repeated()).substr(position % period, bytes);
}

std::string pattern_text(std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    text += pattern(text.size(), std::min(longest, bytes - text.size()));
  }
  return text;
}

bool send_pattern(Socket& socket, std::uint64_t bytes) {
  for (std::uint64_t sent = 0; sent < bytes;) {
    const auto piece = pattern(sent, std::min<std::uint64_t>(longest, bytes - sent));
    if (!socket.send_all(piece)) return false;
    sent += piece.size();
  }
  return true;
}

bool receive_pattern(Socket& socket, std::string_view seen, std::uint64_t total) {
  std::string fresh(seen);
  for (std::uint64_t received = 0;;) {
    if (fresh != pattern(received, fresh.size())) return false;
    received += fresh.size();
    if (received >= total) return received == total;
    fresh.clear();
    if (socket.receive(fresh) != Socket::Received::bytes) return false;
  }
}

std::uint64_t anonymous_bytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::strtoull(line.c_str() + 8, nullptr, 10) * 1024;
  }
  return 0;
}

std::uint64_t waits_of(pid_t pid, std::string_view thread) {
  static constexpr std::string_view field = "voluntary_ctxt_switches:";
  std::error_code gone;
  std::uint64_t waits = 0;
  const auto tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(tasks, gone)) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm") >> std::ws, name);
    if (name != thread) continue;
    std::ifstream status(entry.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(field)) waits += std::strtoull(line.c_str() + field.size(), nullptr, 10);
    }
  }
  return waits;
}

int unlinked_files(pid_t pid, std::string_view directory) {
  const auto process = "/proc/" + std::to_string(pid);
  const auto is_one = [&](const std::string& text) {
    return text.find(directory) != std::string::npos && text.ends_with("(deleted)");
  };
  int found = 0;
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);) found += is_one(line) ? 1 : 0;
  for (const auto& entry : std::filesystem::directory_iterator(process + "/fd")) {
    std::error_code gone;
    found += is_one(std::filesystem::read_symlink(entry.path(), gone).string()) ? 1 : 0;
  }
  return found;
}

}  // namespace idem::test
