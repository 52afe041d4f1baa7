#include "store/log/index_cursor.hpp"

#include "store/log/index_options.hpp"

#include <rocksdb/iterator.h>

#include <utility>

namespace idem::segments {

IndexCursor::IndexCursor(std::unique_ptr<::rocksdb::Iterator> at) noexcept : at_(std::move(at)) {}
IndexCursor::IndexCursor(IndexCursor&&) noexcept = default;
IndexCursor::~IndexCursor() = default;

void IndexCursor::to_first() { at_->SeekToFirst(); }
void IndexCursor::to(std::string_view key) { at_->Seek(slice(key)); }
void IndexCursor::back_to(std::string_view key) { at_->SeekForPrev(slice(key)); }
void IndexCursor::next() { at_->Next(); }

bool IndexCursor::is_on_key() const { return at_->Valid(); }
std::string_view IndexCursor::key() const { return view(at_->key()); }
std::string_view IndexCursor::value() const { return view(at_->value()); }

::rocksdb::Status IndexCursor::status() const { return at_->status(); }
std::string IndexCursor::status_text() const {
  return status().ok() ? std::string() : status().ToString();
}

}  // namespace idem::segments
