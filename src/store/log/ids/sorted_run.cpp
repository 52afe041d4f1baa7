#include "store/log/ids/sorted_run.hpp"

#include "core/bytes/byte_cursor.hpp"

#include <idem/fingerprint.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace idem::segments {
namespace {

constexpr std::uint64_t run_magic = 0x31736469'6d656469;  // "idemids1"
constexpr std::size_t bits_an_entry = 10;
constexpr std::size_t bits_set = 6;
constexpr std::size_t filter_block_bytes = 64;
constexpr std::size_t block_bits = filter_block_bytes * 8;
constexpr std::size_t blocks_in_page = page_payload / filter_block_bytes;
constexpr std::size_t entries_in_page = (page_payload - 1) / IdEntry::bytes;
constexpr std::size_t count_at = page_payload - 1;  // A byte.
constexpr std::size_t firsts_in_page = page_payload / sizeof(std::uint32_t);
/// Read at once where many are read.
constexpr std::size_t many_pages = 256;

constexpr std::uint64_t pages_for(std::uint64_t things, std::uint64_t in_page) {
  return (things + in_page - 1) / in_page;
}

std::uint64_t random_tag() {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  random_bytes(bytes);
  return ByteReader({reinterpret_cast<const char*>(bytes.data()), bytes.size()})
      .number<std::uint64_t>();
}

/// What is in memory of the first id of a page.
std::uint32_t first_of(const RecordId& id) noexcept {
  return static_cast<std::uint32_t>(head_of(id) >> 32U);
}

/// Where in `size` places, in the order of the heads, if they are spread evenly.
std::uint64_t spread(std::uint64_t head, std::uint64_t size) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(head) * size >> 64U);
}

/// Of a page with entries that is sound; never more than it can have.
std::size_t count_in(const char* page) noexcept {
  return std::min<std::size_t>(static_cast<std::uint8_t>(page[count_at]), entries_in_page);
}

/// The first entry that is not before `id`; the count: none.
std::size_t lower_bound_in(const char* page, std::size_t count, const RecordId& id) noexcept {
  std::size_t from = 0;
  std::size_t to = count;
  while (from < to) {
    const std::size_t middle = (from + to) / 2;
    const bool is_before =
        std::memcmp(page + middle * IdEntry::bytes, id.bytes.data(), id.bytes.size()) < 0;
    (is_before ? from : to) = is_before ? middle + 1 : middle;
  }
  return from;
}

template <class See>
bool each_bit(const RecordId& id, const See& see) noexcept {
  std::uint64_t bits = tail_of(id);
  for (std::size_t i = 0; i < bits_set; ++i) {
    if (!see((bits % block_bits) / 64, std::uint64_t{1} << bits % 64)) return false;
    bits /= block_bits;
  }
  return true;
}

}  // namespace

std::uint64_t SortedRun::blocks_for(std::uint64_t entries) noexcept {
  return pages_for(std::max<std::uint64_t>(1, entries * bits_an_entry), block_bits);
}

// In the order of the ids, so that a writer needs to remember one block.
std::uint64_t SortedRun::block_of(const RecordId& id, std::uint64_t blocks) noexcept {
  return spread(head_of(id), blocks);
}

void SortedRun::add(Block& block, const RecordId& id) noexcept {
  (void)each_bit(id, [&](std::size_t word, std::uint64_t bit) {
    block.words[word] |= bit;
    return true;
  });
}

SortedRun::~SortedRun() { ::close(descriptor_); }

std::expected<std::shared_ptr<const SortedRun>, std::string> SortedRun::open(
    const std::string& path, std::uint32_t number, bool with_filter) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return std::unexpected(fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  }
  // A miss shall bring what was asked for, and not what follows.
  (void)::posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
  std::shared_ptr<SortedRun> run(new SortedRun(descriptor, number));
  const bool is_sound =
      run->read_about() && run->read_firsts() && (!with_filter || run->read_filter());
  if (!is_sound) return std::unexpected(path + " is damaged");
  return run;
}

bool SortedRun::read_about() {
  std::string page(page_bytes, '\0');
  if (!read_pages(descriptor_, number_, 0, 1, page.data())) return false;
  ByteReader in(page);
  const auto found = in.number<std::uint64_t>();
  entries_ = in.number<std::uint64_t>();
  blocks_ = in.number<std::uint64_t>();
  tag_ = in.number<std::uint64_t>();
  return found == run_magic && blocks_ > 0;
}

bool SortedRun::read_filter() {
  filter_.resize(blocks_);
  std::string pages(many_pages * page_bytes, '\0');
  const std::uint64_t count = pages_for(blocks_, blocks_in_page);
  for (std::uint64_t at = 0; at < count; at += many_pages) {
    const std::size_t some = std::min<std::uint64_t>(many_pages, count - at);
    if (!read(1 + at, some, pages.data())) return false;
    for (std::size_t i = 0; i < some; ++i) {
      const std::uint64_t first = (at + i) * blocks_in_page;
      const std::size_t blocks = std::min<std::uint64_t>(blocks_in_page, blocks_ - first);
      for (std::size_t block = 0; block < blocks; ++block) {
        ByteReader in(
            {pages.data() + i * page_bytes + block * filter_block_bytes, filter_block_bytes});
        for (std::uint64_t& word : filter_[first + block].words) word = in.number<std::uint64_t>();
      }
    }
  }
  return true;
}

bool SortedRun::read_firsts() {
  const std::uint64_t pages = pages_for(entries_, entries_in_page);
  firsts_.reserve(pages);
  std::string read_pages(many_pages * page_bytes, '\0');
  const std::uint64_t count = pages_for(pages, firsts_in_page);
  for (std::uint64_t at = 0; at < count; at += many_pages) {
    const std::size_t some = std::min<std::uint64_t>(many_pages, count - at);
    if (!read(first_page() + pages + at, some, read_pages.data())) return false;
    for (std::size_t page = 0; page < some; ++page) {
      ByteReader in(std::string_view(read_pages).substr(page * page_bytes));
      for (std::size_t i = 0; i < firsts_in_page && firsts_.size() < pages; ++i) {
        firsts_.push_back(in.number<std::uint32_t>());
      }
    }
  }
  return true;
}

std::uint64_t SortedRun::first_page() const noexcept {
  return 1 + pages_for(blocks_, blocks_in_page);
}

void SortedRun::prefetch(const RecordId& id) const noexcept {
  if (!filter_.empty()) __builtin_prefetch(&filter_[block_of(id, blocks_)]);
}

bool SortedRun::may_have(const RecordId& id) const noexcept {
  if (filter_.empty()) return true;
  const Block& block = filter_[block_of(id, blocks_)];
  return each_bit(
      id, [&](std::size_t word, std::uint64_t bit) { return (block.words[word] & bit) != 0; });
}

// Digests are spread evenly, so the first guess is near. The entry may be at the end of the page
// before the first one with this head.
std::uint64_t SortedRun::page_for(const RecordId& id) const noexcept {
  const std::uint32_t head = first_of(id);
  std::uint64_t to = spread(head_of(id), firsts_.size());
  std::uint64_t from = to;
  for (std::uint64_t step = 1; from > 0 && firsts_[from] >= head; step *= 2) {
    from -= std::min(from, step);
  }
  for (std::uint64_t step = 1; to < firsts_.size() && firsts_[to] < head; step *= 2) {
    to = std::min<std::uint64_t>(firsts_.size(), to + step);
  }
  const auto begin = firsts_.begin();
  const auto found = std::lower_bound(begin + static_cast<std::ptrdiff_t>(from),
                                      begin + static_cast<std::ptrdiff_t>(to), head) -
                     begin;
  return found == 0 ? 0 : static_cast<std::uint64_t>(found - 1);
}

SortedRun::Found SortedRun::find(const RecordId& id, IdEntry& into) const {
  alignas(64) std::array<char, page_bytes> page;  // NOLINT: filled by read().
  const std::uint32_t head = first_of(id);
  for (std::uint64_t at = page_for(id); at < firsts_.size() && firsts_[at] <= head; ++at) {
    if (!read(first_page() + at, 1, page.data())) return Found::damaged;
    const std::size_t count = count_in(page.data());
    const std::size_t place = lower_bound_in(page.data(), count, id);
    if (place == count) continue;
    into = read_entry(page.data() + place * IdEntry::bytes);
    return into.id == id ? Found::yes : Found::no;
  }
  return Found::no;
}

SortedRun::Cursor::Cursor(std::shared_ptr<const SortedRun> run, const RecordId& from,
                          std::size_t pages, bool over_damage)
    : run_(std::move(run)), at_once_(pages), over_damage_(over_damage) {
  first_ = run_->page_for(from);
  advance();
  while (!is_at_end_ && entry_.id < from) advance();
}

/// Fills pages_; false: there are no more.
bool SortedRun::Cursor::load() {
  first_ += loaded_;
  page_ = 0;
  at_ = 0;
  while (first_ < run_->firsts_.size()) {
    loaded_ = std::min<std::uint64_t>(at_once_, run_->firsts_.size() - first_);
    pages_.resize(loaded_ * page_bytes);
    if (run_->read(run_->first_page() + first_, loaded_, pages_.data())) return true;
    has_damage_ = true;
    if (!over_damage_) return false;
    if (loaded_ == 1) {
      ++first_;
    } else {
      at_once_ = 1;
    }
  }
  loaded_ = 0;
  return false;
}

void SortedRun::Cursor::advance() {
  while (page_ == loaded_ || at_ == count_in(pages_.data() + page_ * page_bytes)) {
    if (page_ + 1 < loaded_) {
      ++page_;
      at_ = 0;
    } else if (!load()) {
      is_at_end_ = true;
      return;
    }
  }
  entry_ = read_entry(pages_.data() + page_ * page_bytes + at_++ * IdEntry::bytes);
}

SortedRunWriter::SortedRunWriter(std::string path, std::uint32_t number, std::uint64_t entries)
    : path_(std::move(path)),
      number_(number),
      tag_(random_tag()),
      descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)),
      error_(descriptor_ < 0 ? errno : 0),
      blocks_(SortedRun::blocks_for(entries)),
      filter_(descriptor_, tag_, 1),
      pages_(descriptor_, tag_, 1 + pages_for(blocks_, blocks_in_page)) {
  firsts_.reserve(pages_for(entries, entries_in_page));
}

SortedRunWriter::~SortedRunWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SortedRunWriter::append(const IdEntry& entry) {
  if (page_ == nullptr || in_page_ == entries_in_page) {
    page_ = pages_.next_page();
    in_page_ = 0;
    firsts_.push_back(first_of(entry.id));
  }
  write_entry(entry, page_ + in_page_ * IdEntry::bytes);
  page_[count_at] = static_cast<char>(++in_page_);
  ++entries_;
  write_filter_to(SortedRun::block_of(entry.id, blocks_));
  SortedRun::add(filling_, entry.id);
}

/// Writes the blocks before this one.
void SortedRunWriter::write_filter_to(std::uint64_t block) {
  for (; block_ < block; ++block_) {
    const std::size_t in_page = block_ % blocks_in_page;
    if (in_page == 0) filter_page_ = filter_.next_page();
    ByteWriter out(filter_page_ + in_page * filter_block_bytes);
    for (const std::uint64_t word : filling_.words) out.number(word);
    filling_ = {};
  }
}

int SortedRunWriter::finish() {
  write_filter_to(blocks_);
  for (std::size_t at = 0; at < firsts_.size(); ++at) {
    if (at % firsts_in_page == 0) page_ = pages_.next_page();
    ByteWriter(page_ + at % firsts_in_page * sizeof(std::uint32_t)).number(firsts_[at]);
  }
  PageWriter about(descriptor_, number_, 0);
  ByteWriter out(about.next_page());
  out.number(run_magic);
  out.number(entries_);
  out.number(blocks_);
  out.number(tag_);
  for (PageWriter* const part : {&filter_, &pages_, &about}) {
    part->flush();
    if (error_ == 0) error_ = part->error();
  }
  if (error_ == 0 && ::fdatasync(descriptor_) != 0) error_ = errno;
  return error_;
}

}  // namespace idem::segments
