#include "support/power_loss.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace idem::test {
namespace {

using Kind = TraceStep::Kind;
constexpr std::size_t sector = 512;

std::string content_at(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Leaves out what is zero, as most of a prepared file is.
void put_file(const std::string& path, const std::string& bytes) {
  constexpr std::size_t block = 4096;
  static const std::string zeros(block, '\0');
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool good = file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes.size())) == 0;
  for (std::size_t at = 0; good && at < bytes.size(); at += block) {
    const std::string_view part = std::string_view(bytes).substr(at, block);
    if (part == std::string_view(zeros).substr(0, part.size())) continue;
    good = ::pwrite(file, part.data(), part.size(), static_cast<off_t>(at)) ==
           static_cast<ssize_t>(part.size());
  }
  if (file >= 0) ::close(file);
  if (!good) throw std::runtime_error(path + " cannot be written");
}

}  // namespace

PowerLoss::PowerLoss(const std::string& trace, const std::string& before)
    : trace_(trace, std::ios::binary) {
  TraceStep step;
  const auto end = std::filesystem::file_size(trace);
  for (std::uint64_t at = 0; at + sizeof step <= end;) {
    trace_.seekg(static_cast<std::streamoff>(at));
    trace_.read(reinterpret_cast<char*>(&step), sizeof step);
    if (at + sizeof step + step.bytes > end) break;  // The kill came in the middle.
    starts_.push_back(at);
    at += sizeof step + step.bytes;
  }
  nodes_.emplace_back().is_folder = true;
  if (std::filesystem::exists(before)) read_folder(before, root);
}

void PowerLoss::read_folder(const std::string& from, std::uint32_t node) {
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    const std::uint32_t inner = fresh(entry.is_directory());
    nodes_[node].names[entry.path().filename()] = inner;
    if (entry.is_directory()) {
      read_folder(entry.path(), inner);
    } else {
      nodes_[inner].durable = content_at(entry.path());
    }
  }
}

std::uint32_t PowerLoss::fresh(bool is_folder) {
  nodes_.emplace_back().is_folder = is_folder;
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t PowerLoss::find(const std::string& path) {
  std::uint32_t node = root;
  for (const auto& part : std::filesystem::path(path)) {
    if (part == ".") continue;
    const auto found = nodes_[node].names.find(part);
    if (found == nodes_[node].names.end()) {
      // Made by a call that is not traced, such as fopen(): a log of RocksDB's for people.
      const std::uint32_t unseen = fresh(false);
      nodes_[node].names[part] = unseen;
      return unseen;
    }
    node = found->second;
  }
  return node;
}

std::uint32_t PowerLoss::folder_of(const std::string& path) {
  return find(std::filesystem::path(path).parent_path());
}

void PowerLoss::set_name(const std::string& path, std::uint32_t node) {
  Node& folder = nodes_[folder_of(path)];
  folder.earlier.push_back(folder.names);
  folder.names[std::filesystem::path(path).filename()] = node;
}

void PowerLoss::drop_name(const std::string& path) {
  Node& folder = nodes_[folder_of(path)];
  folder.earlier.push_back(folder.names);
  folder.names.erase(std::filesystem::path(path).filename());
}

void PowerLoss::go_to(std::size_t step) {
  std::string bytes;
  for (; next_ < step; ++next_) {
    TraceStep one;
    trace_.seekg(static_cast<std::streamoff>(starts_[next_]));
    trace_.read(reinterpret_cast<char*>(&one), sizeof one);
    bytes.resize(one.bytes);
    trace_.read(bytes.data(), static_cast<std::streamsize>(one.bytes));
    if (!trace_) throw std::runtime_error("the trace cannot be read");
    take(one, bytes);
  }
}

void PowerLoss::apply(std::string& to, const Change& change) {
  if (change.resizes) return to.resize(change.at);
  if (to.size() < change.at + change.bytes.size()) to.resize(change.at + change.bytes.size());
  to.replace(change.at, change.bytes.size(), change.bytes);
}

/// Whatever else of the file is pending: a sector that gets it later has these bytes, too.
void PowerLoss::write_durably(Node& node, const Change& change) {
  apply(node.durable, change);
  const std::uint64_t end = change.at + change.bytes.size();
  // It was under way.
  const auto is_it = [&](const Change& one) {
    return one.at == change.at && one.bytes == change.bytes;
  };
  if (const auto it = std::ranges::find_if(node.pending, is_it); it != node.pending.end()) {
    const auto place = static_cast<std::size_t>(it - node.pending.begin());
    node.pending.erase(it);
    for (auto& [number, sync] : node.syncs) sync.changes -= sync.changes > place ? 1 : 0;
  }
  for (Change& other : node.pending) {
    if (other.resizes) {
      other.at = std::max(other.at, end);
      continue;
    }
    const std::uint64_t from = std::max(change.at, other.at);
    const std::uint64_t to = std::min<std::uint64_t>(end, other.at + other.bytes.size());
    if (from >= to) continue;
    other.bytes.replace(from - other.at, to - from, change.bytes, from - change.at, to - from);
  }
}

void PowerLoss::end_sync(Node& node, std::uint64_t number) {
  const Sync sync = node.syncs.at(number);
  node.syncs.erase(number);
  const auto pending = node.pending.begin();
  const auto to = pending + static_cast<std::ptrdiff_t>(sync.changes);
  std::for_each(pending, to, [&](const Change& one) { apply(node.durable, one); });
  node.pending.erase(pending, to);
  const auto names = node.earlier.begin();
  node.earlier.erase(names, names + static_cast<std::ptrdiff_t>(sync.names));
  for (auto& [other, had] : node.syncs) {
    had.changes -= std::min(had.changes, sync.changes);
    had.names -= std::min(had.names, sync.names);
  }
}

void PowerLoss::take(const TraceStep& step, const std::string& bytes) {
  const auto node = [&]() -> Node& { return nodes_[of_trace_.at(step.node)]; };
  switch (step.kind) {
    case Kind::seen:
      of_trace_[step.node] = find(bytes);
      break;
    case Kind::made:
    case Kind::made_folder: {
      // The folder itself belongs to the one that it lies in, which the trace does not cover.
      const std::uint32_t number = bytes == "." ? root : fresh(step.kind == Kind::made_folder);
      of_trace_[step.node] = number;
      if (number != root) set_name(bytes, number);
      break;
    }
    case Kind::renamed: {
      const std::string from = bytes.substr(0, bytes.find('\0'));
      const std::string to = bytes.substr(bytes.find('\0') + 1);
      const std::uint32_t moved = find(from);
      if (folder_of(from) != folder_of(to)) unknown_.push_back("renamed to another folder: " + to);
      Node& folder = nodes_[folder_of(from)];
      folder.earlier.push_back(folder.names);
      folder.names.erase(std::filesystem::path(from).filename());
      folder.names[std::filesystem::path(to).filename()] = moved;
      break;
    }
    case Kind::unlinked:
      drop_name(bytes);
      break;
    case Kind::written:
      node().pending.push_back({step.at, bytes, false});
      break;
    case Kind::written_durably:
      write_durably(node(), {step.at, bytes, false});
      break;
    case Kind::resized:
      node().pending.push_back({step.at, {}, true});
      break;
    case Kind::sync_begun:
      node().syncs[step.at] = {node().pending.size(), node().earlier.size()};
      break;
    case Kind::sync_done:
      end_sync(node(), step.at);
      break;
    case Kind::said:
      said_ += bytes;
      break;
    case Kind::unknown:
      unknown_.push_back(bytes);
      break;
  }
}

std::string PowerLoss::content(const Node& node, std::mt19937& random) {
  const auto& pending = node.pending;
  if (pending.empty() || random() % 4 == 0) return node.durable;
  // Each sector as it was before the change of that number; in a third of the cases all as of one.
  std::map<std::uint64_t, std::size_t> moments;
  const bool as_of_one = random() % 3 == 0;
  const std::size_t one = random() % (pending.size() + 1);
  const auto moment_of = [&](std::uint64_t number) {
    if (as_of_one) return one;
    const auto [at, is_new] = moments.try_emplace(number);
    if (is_new) at->second = random() % (pending.size() + 1);
    return at->second;
  };
  std::string all = node.durable;
  std::vector<std::uint64_t> lengths{all.size()};
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const Change& change = pending[i];
    if (change.resizes) {
      lengths.push_back(change.at);
      continue;
    }
    const std::uint64_t end = change.at + change.bytes.size();
    lengths.push_back(std::max(lengths.back(), end));
    for (std::uint64_t at = change.at; at < end;) {
      const std::uint64_t to = std::min<std::uint64_t>(end, (at / sector + 1) * sector);
      if (i < moment_of(at / sector)) {
        apply(all, {at, change.bytes.substr(at - change.at, to - at), false});
      }
      at = to;
    }
  }
  all.resize(lengths[as_of_one ? one : random() % lengths.size()]);
  return all;
}

void PowerLoss::put_node(std::uint32_t number, const std::string& to, std::mt19937& random) const {
  const Node& node = nodes_[number];
  if (!node.is_folder) return put_file(to, content(node, random));
  std::filesystem::create_directory(to);
  // Mostly all names or those of the last sync.
  const std::size_t last = node.earlier.size();
  const std::size_t moment =
      random() % 3 == 0 ? last : (random() % 2 == 0 ? 0 : random() % (last + 1));
  const auto& names = moment < last ? node.earlier[moment] : node.names;
  for (const auto& [name, inner] : names) put_node(inner, to + "/" + name, random);
}

void PowerLoss::put(const std::string& to, std::mt19937& random) const {
  put_node(root, to, random);
}

}  // namespace idem::test
