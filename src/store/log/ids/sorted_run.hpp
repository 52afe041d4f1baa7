#pragma once

#include "store/log/ids/entry.hpp"
#include "store/log/ids/page.hpp"

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace idem::segments {

/// Entries in the order of their ids, each id once, in a file that never changes. In memory are
/// four bytes of the first id of each page, which has 35 entries, and a Bloom filter (ten bits an
/// entry, in blocks of 64 bytes: Putze et al., 2007) unless memory is short: so a look for an id
/// reads one page, and mostly none if the run does not have it. Used by several threads.
///
/// The file: a page about itself, the filter, the entries, the first ids.
class SortedRun {
 public:
  /// The error is a sentence.
  static std::expected<std::shared_ptr<const SortedRun>, std::string> open(const std::string& path,
                                                                           std::uint32_t number,
                                                                           bool with_filter);
  ~SortedRun();
  SortedRun(const SortedRun&) = delete;
  SortedRun& operator=(const SortedRun&) = delete;

  std::uint32_t number() const noexcept { return number_; }
  /// Drawn for this file: another one has another, whatever its number.
  std::uint64_t tag() const noexcept { return tag_; }
  std::uint64_t entries() const noexcept { return entries_; }
  bool has_filter() const noexcept { return !filter_.empty(); }
  std::size_t filter_bytes() const noexcept { return blocks_ * sizeof(Block); }
  /// Of its filter, if it is there, and of the first ids.
  std::size_t memory_bytes() const noexcept {
    return filter_.size() * sizeof(Block) + firsts_.size() * sizeof(std::uint32_t);
  }

  /// So that may_have() finds in the processor's cache what it needs.
  void prefetch(const RecordId& id) const noexcept;
  /// False: it has no entry of this id.
  bool may_have(const RecordId& id) const noexcept;

  enum class Found : std::uint8_t { no, yes, damaged };
  Found find(const RecordId& id, IdEntry& into) const;

  /// A part of it, in order.
  class Cursor {
   public:
    /// Reads `pages` at once. `over_damage`: goes on behind pages that are damaged.
    Cursor(std::shared_ptr<const SortedRun> run, const RecordId& from, std::size_t pages,
           bool over_damage);

    bool is_at_end() const noexcept { return is_at_end_; }
    /// It met a damaged page; without `over_damage` it is at its end then.
    bool has_damage() const noexcept { return has_damage_; }
    const IdEntry& entry() const noexcept { return entry_; }
    void advance();

   private:
    bool load();

    std::shared_ptr<const SortedRun> run_;
    std::string pages_;
    std::size_t at_once_;
    std::uint64_t first_ = 0;  ///< Of those in pages_.
    std::size_t loaded_ = 0;
    std::size_t page_ = 0;  ///< In pages_.
    std::size_t at_ = 0;    ///< In the page.
    IdEntry entry_;
    bool over_damage_;
    bool has_damage_ = false;
    bool is_at_end_ = false;
  };

 private:
  friend class SortedRunWriter;
  struct Block {
    std::array<std::uint64_t, 8> words{};
  };
  static std::uint64_t blocks_for(std::uint64_t entries) noexcept;
  static std::uint64_t block_of(const RecordId& id, std::uint64_t blocks) noexcept;
  static void add(Block& block, const RecordId& id) noexcept;

  SortedRun(int descriptor, std::uint32_t number) noexcept
      : descriptor_(descriptor), number_(number) {}
  bool read_about();
  bool read_filter();
  bool read_firsts();
  bool read(std::uint64_t page, std::size_t count, char* into) const noexcept {
    return read_pages(descriptor_, tag_, page, count, into);
  }
  std::uint64_t first_page() const noexcept;
  /// The page that has the first entry that is not before `id`; the number of pages: none.
  std::uint64_t page_for(const RecordId& id) const noexcept;

  int descriptor_;
  std::uint32_t number_;
  std::uint64_t tag_ = 0;  ///< Random: a file that another one replaced does not look like it.
  std::uint64_t entries_ = 0;
  std::uint64_t blocks_ = 0;
  std::vector<Block> filter_;          ///< Empty: not in memory.
  std::vector<std::uint32_t> firsts_;  ///< Of each page of entries.
};

/// Writes the file of a run. Used by one thread.
class SortedRunWriter {
 public:
  /// Makes the file. `entries`: as many at most.
  SortedRunWriter(std::string path, std::uint32_t number, std::uint64_t entries);
  ~SortedRunWriter();
  SortedRunWriter(const SortedRunWriter&) = delete;
  SortedRunWriter& operator=(const SortedRunWriter&) = delete;

  /// Each id is larger than the one before.
  void append(const IdEntry& entry);
  /// finish() will fail.
  bool has_failed() const noexcept {
    return error_ != 0 || filter_.error() != 0 || pages_.error() != 0;
  }
  /// Zero: all of it is on the disk, but for its name. Else an errno, and the file is of no use.
  int finish();

  const std::string& path() const noexcept { return path_; }
  std::uint64_t entries() const noexcept { return entries_; }

 private:
  void write_filter_to(std::uint64_t block);

  std::string path_;
  std::uint32_t number_;
  std::uint64_t tag_;
  int descriptor_;
  int error_ = 0;
  std::uint64_t blocks_;
  std::uint64_t block_ = 0;  ///< The one being filled.
  SortedRun::Block filling_{};
  PageWriter filter_;
  PageWriter pages_;
  char* filter_page_ = nullptr;
  char* page_ = nullptr;
  std::size_t in_page_ = 0;
  std::uint64_t entries_ = 0;
  std::vector<std::uint32_t> firsts_;
};

}  // namespace idem::segments
