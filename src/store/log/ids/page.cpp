#include "store/log/ids/page.hpp"

#include "core/bytes/byte_cursor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace idem::segments {
namespace {

/// Written in one call.
constexpr std::size_t pages_at_once = 256;
/// The kernel begins to write to the disk for each so many bytes, so that the sync finds few left.
constexpr std::uint64_t page_start_bytes = 256UL << 10U;

std::uint64_t checksum_of_page(const char* page, std::uint64_t tag, std::uint64_t index) noexcept {
  RecordId beside;
  ByteWriter out(reinterpret_cast<char*>(beside.bytes.data()));
  out.number(tag);
  out.number(index);
  return checksum_of(beside, {page, page_payload});
}

}  // namespace

void seal_page(char* page, std::uint64_t tag, std::uint64_t index) noexcept {
  ByteWriter(page + page_payload).number(checksum_of_page(page, tag, index));
}

bool read_pages(int descriptor, std::uint64_t tag, std::uint64_t index, std::size_t count,
                char* into) noexcept {
  const std::size_t size = count * page_bytes;
  std::size_t got = 0;
  while (got < size) {
    const auto at = static_cast<off_t>(index * page_bytes + got);
    const ssize_t n = ::pread(descriptor, into + got, size - got, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const char* page = into + i * page_bytes;
    ByteReader stored({page + page_payload, checksum_bytes});
    if (stored.number<std::uint64_t>() != checksum_of_page(page, tag, index + i)) return false;
  }
  return true;
}

PageWriter::PageWriter(int descriptor, std::uint64_t tag, std::uint64_t index)
    : descriptor_(descriptor), tag_(tag), first_(index), started_to_(index * page_bytes) {
  pages_.reserve(pages_at_once * page_bytes);
}

char* PageWriter::next_page() {
  if (pages_.size() == pages_at_once * page_bytes) flush();
  ++count_;
  pages_.resize(pages_.size() + page_bytes, '\0');
  return pages_.data() + pages_.size() - page_bytes;
}

void PageWriter::flush() {
  const std::uint64_t first = first_ + count_ - pages_.size() / page_bytes;
  for (std::size_t i = 0; i * page_bytes < pages_.size(); ++i) {
    seal_page(pages_.data() + i * page_bytes, tag_, first + i);
  }
  std::size_t done = 0;
  while (done < pages_.size() && error_ == 0) {
    const auto at = static_cast<off_t>(first * page_bytes + done);
    const ssize_t n = ::pwrite(descriptor_, pages_.data() + done, pages_.size() - done, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) error_ = n < 0 ? errno : EIO;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  pages_.clear();
  start_writing();
}

void PageWriter::start_writing() {
  const std::uint64_t end = (first_ + count_) * page_bytes;
  if (end - started_to_ < page_start_bytes) return;
  // One slice at a time, as a commit's write waits for those that the disk has before it. The
  // kernel tells of a failed write once: the sync at the end would not see it any more.
  const int failed = ::sync_file_range(descriptor_, static_cast<off_t>(started_to_),
                                       static_cast<off_t>(end - started_to_),
                                       SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  // Without that call the sync does all.
  if (failed != 0 && error_ == 0 && errno != ENOSYS && errno != EPERM) error_ = errno;
  started_to_ = end;
}

}  // namespace idem::segments
