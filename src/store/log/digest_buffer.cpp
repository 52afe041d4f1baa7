#include "store/log/digest_buffer.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <vector>

namespace idem::segments {
namespace {

using ::rocksdb::Allocator;
using ::rocksdb::Arena;
using ::rocksdb::KeyHandle;
using ::rocksdb::MemTableRep;
using ::rocksdb::Slice;

/// About what an entry needs, so that there is about one for each list.
constexpr std::size_t entry_bytes = 96;

/// In front of each entry's bytes.
struct Node {
  Node* next;
  const char* bytes() const noexcept { return reinterpret_cast<const char*>(this + 1); }
};

/// One thread inserts. Others read only what is inserted no more.
class DigestBuffer final : public MemTableRep {
 public:
  DigestBuffer(const KeyComparator& compare, Allocator* allocator, std::size_t lists)
      : MemTableRep(allocator), compare_(compare) {
    char* room = nullptr;
    (void)MemTableRep::Allocate(lists * sizeof(Node*), &room);
    lists_ = {new (room) Node*[lists], lists};
    std::ranges::fill(lists_, nullptr);
  }

  KeyHandle Allocate(const std::size_t bytes, char** into) override {
    char* room = nullptr;
    (void)MemTableRep::Allocate(sizeof(Node) + bytes, &room);
    Node* const node = new (room) Node{nullptr};
    *into = room + sizeof(Node);
    return node;
  }

  void Insert(KeyHandle handle) override {
    Node* const node = static_cast<Node*>(handle);
    Node** at = &lists_[list_of(compare_.decode_key(node->bytes()))];
    while (*at != nullptr && compare_((*at)->bytes(), node->bytes()) < 0) at = &(*at)->next;
    node->next = *at;
    *at = node;
  }

  bool Contains(const char* key) const override {
    const Node* at = first_from(compare_.decode_key(key)).node;
    return at != nullptr && compare_(at->bytes(), key) == 0;
  }

  /// All of it is the allocator's.
  std::size_t ApproximateMemoryUsage() override { return 0; }

  Iterator* GetIterator(Arena* arena) override {
    if (arena == nullptr) return new At(*this);
    // The caller destroys it but does not delete it: its place is for the next one then. (The
    // arena's header is not public, and a buffer that is flushed must not grow.)
    const std::lock_guard lock(places_mutex_);
    // Not one that another thread has left: its destructor may not have ended.
    const auto left = std::ranges::find(free_places_, std::this_thread::get_id(), &Left::by);
    if (left == free_places_.end()) return new (places_.emplace_back().bytes) AtPlace(*this);
    Place* const place = left->place;
    free_places_.erase(left);
    return new (place->bytes) AtPlace(*this);
  }

 private:
  struct Position {
    std::size_t list = 0;
    const Node* node = nullptr;  ///< Null: behind the last one.
  };

  class At : public Iterator {
   public:
    explicit At(const DigestBuffer& of) : of_(of) {}

    bool Valid() const override { return at_.node != nullptr; }
    const char* key() const override { return at_.node->bytes(); }
    void Next() override {
      at_.node = at_.node->next;
      if (at_.node == nullptr) at_ = of_.first_of(at_.list + 1);
    }
    void Prev() override { at_ = of_.before(at_); }
    void Seek(const Slice& internal_key, const char*) override {
      at_ = of_.first_from(internal_key);
    }
    void SeekForPrev(const Slice& internal_key, const char*) override {
      at_ = of_.first_from(internal_key);
      const bool is_there = Valid() && of_.compare_(key(), internal_key) == 0;
      if (!is_there) at_ = of_.before(at_);
    }
    void SeekToFirst() override { at_ = of_.first_of(0); }
    void SeekToLast() override { at_ = of_.before({of_.lists_.size(), nullptr}); }

   protected:
    const DigestBuffer& of_;

   private:
    Position at_;
  };

  class AtPlace final : public At {
   public:
    using At::At;
    ~AtPlace() override { of_.give_back(this); }
  };
  struct Place {
    alignas(AtPlace) std::byte bytes[sizeof(AtPlace)];
  };
  struct Left {
    Place* place;
    std::thread::id by;
  };
  void give_back(AtPlace* iterator) const {
    const std::lock_guard lock(places_mutex_);
    free_places_.push_back({reinterpret_cast<Place*>(iterator), std::this_thread::get_id()});
  }

  /// The key is RocksDB's, with the digest in front.
  std::size_t list_of(const Slice& internal_key) const {
    std::uint64_t head = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const bool has = i + 8 < internal_key.size();  // The last eight bytes are RocksDB's own.
      head = head << 8U | (has ? static_cast<unsigned char>(internal_key[i]) : 0U);
    }
    return head * lists_.size() >> 32U;
  }

  Position first_of(std::size_t list) const {
    while (list < lists_.size() && lists_[list] == nullptr) ++list;
    return {list, list < lists_.size() ? lists_[list] : nullptr};
  }
  Position first_from(const Slice& internal_key) const {
    const std::size_t list = list_of(internal_key);
    const Node* node = lists_[list];
    while (node != nullptr && compare_(node->bytes(), internal_key) < 0) node = node->next;
    return node != nullptr ? Position{list, node} : first_of(list + 1);
  }
  Position before(const Position& at) const {
    const Node* last = nullptr;
    if (at.node != nullptr) {
      for (const Node* node = lists_[at.list]; node != at.node; node = node->next) last = node;
      if (last != nullptr) return {at.list, last};
    }
    for (std::size_t list = at.list; list-- > 0;) {
      for (const Node* node = lists_[list]; node != nullptr; node = node->next) last = node;
      if (last != nullptr) return {list, last};
    }
    return {lists_.size(), nullptr};
  }

  const KeyComparator& compare_;
  std::span<Node*> lists_;

  mutable std::mutex places_mutex_;
  std::deque<Place> places_;  ///< Of iterators.
  mutable std::vector<Left> free_places_;
};

class DigestBuffers final : public ::rocksdb::MemTableRepFactory {
 public:
  explicit DigestBuffers(std::size_t lists) : lists_(lists) {}

  using MemTableRepFactory::CreateMemTableRep;
  MemTableRep* CreateMemTableRep(const MemTableRep::KeyComparator& compare, Allocator* allocator,
                                 const ::rocksdb::SliceTransform*, ::rocksdb::Logger*) override {
    return new DigestBuffer(compare, allocator, lists_);
  }
  const char* Name() const override { return "idem.DigestBuffers"; }

 private:
  std::size_t lists_;
};

}  // namespace

std::shared_ptr<::rocksdb::MemTableRepFactory> digest_buffers(std::size_t buffer_bytes) {
  return std::make_shared<DigestBuffers>(std::max<std::size_t>(1, buffer_bytes / entry_bytes));
}

}  // namespace idem::segments
