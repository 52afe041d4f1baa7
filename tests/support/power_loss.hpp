#pragma once

#include "disk_trace/steps.hpp"

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace idem::test {

/// What a disk may hold once the power fails at one moment of a process's life, from the trace of
/// its calls (disk_trace/). Held for certain: what was there before the trace began, and what a
/// sync made durable. Of the rest: any sectors of 512 bytes as they were at any moment since their
/// last sync, any length that a file had since then, and of each folder the names as they were at
/// any moment since its own last sync. POSIX promises no order of the names of one folder, but file
/// systems with a journal keep it, and RocksDB needs it.
class PowerLoss {
 public:
  /// `before` is a copy of the folder as it was when the trace began, or no path that exists.
  PowerLoss(const std::string& trace, const std::string& before);

  std::size_t steps() const { return starts_.size(); }
  /// Goes on to this step; never back.
  void go_to(std::size_t step);
  /// Writes such a folder to `to`, which must not exist.
  void put(const std::string& to, std::mt19937& random) const;
  /// What the process said up to here.
  const std::string& said() const { return said_; }
  /// The calls that the trace could not describe. Images are worth nothing if there are any.
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  struct Change {
    std::uint64_t at = 0;
    std::string bytes;
    bool resizes = false;
  };
  /// So many of what is pending are in it.
  struct Sync {
    std::size_t changes = 0;
    std::size_t names = 0;
  };
  struct Node {
    bool is_folder = false;
    std::string durable;
    std::vector<Change> pending;
    std::map<std::string, std::uint32_t> names;
    /// As they were from the last sync on.
    std::vector<std::map<std::string, std::uint32_t>> earlier;
    std::map<std::uint64_t, Sync> syncs;  ///< That were begun.
  };
  static constexpr std::uint32_t root = 0;

  void take(const TraceStep& step, const std::string& bytes);
  void read_folder(const std::string& from, std::uint32_t node);
  std::uint32_t folder_of(const std::string& path);
  std::uint32_t find(const std::string& path);
  std::uint32_t fresh(bool is_folder);
  void set_name(const std::string& path, std::uint32_t node);
  void drop_name(const std::string& path);
  static void apply(std::string& to, const Change& change);
  static void write_durably(Node& node, const Change& change);
  static void end_sync(Node& node, std::uint64_t number);
  static std::string content(const Node& node, std::mt19937& random);
  void put_node(std::uint32_t node, const std::string& to, std::mt19937& random) const;

  std::ifstream trace_;
  std::vector<std::uint64_t> starts_;
  std::size_t next_ = 0;
  std::string said_;
  std::vector<std::string> unknown_;
  std::vector<Node> nodes_;
  std::map<std::uint32_t, std::uint32_t> of_trace_;  ///< Its numbers to those of nodes_.
};

}  // namespace idem::test
