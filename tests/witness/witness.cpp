// Loaded before the C library into a gateway under test (LD_PRELOAD): counts what each of its
// threads allocates, and writes down in which order it sends and makes durable. What it sees goes
// to the file that IDEM_WITNESS names, which the test maps, too.
#include "witness/witness.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

using idem::test::Witnessed;

// Never given back: threads outlive whatever could do it.
Witnessed* map_file() {
  const char* path = std::getenv("IDEM_WITNESS");
  if (path == nullptr) return nullptr;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = ::mmap(nullptr, sizeof(Witnessed), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Witnessed*>(memory);
}

Witnessed* seen() {
  static Witnessed* const file = map_file();
  return file;
}

// Without an allocation of its own, which would come back here.
[[gnu::tls_model("initial-exec")]] thread_local std::atomic<std::uint64_t>* mine = nullptr;

void count_allocation() {
  if (mine == nullptr) {
    Witnessed* file = seen();
    if (file == nullptr) return;
    const std::size_t place = file->threads.fetch_add(1);
    if (place >= file->allocations.size()) return;
    file->allocations[place].thread.store(::gettid());
    mine = &file->allocations[place].count;
  }
  mine->fetch_add(1, std::memory_order_relaxed);
}

void note(Witnessed::Event::Kind kind, std::string_view begins) {
  Witnessed* file = seen();
  if (file == nullptr) return;
  const std::size_t place = file->events_begun.fetch_add(1);
  if (place >= file->events.size()) return;
  auto& event = file->events[place];
  event.kind = kind;
  begins.copy(event.begins.data(), event.begins.size() - 1);
  event.written.store(true);
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
  count_allocation();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  count_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  count_allocation();
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  count_allocation();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}

// After it has returned: from there on it is durable.
int fdatasync(int file) {
  static const auto real = next<int (*)(int)>("fdatasync");
  const int code = real(file);
  if (code == 0) note(Witnessed::Event::Kind::synced, {});
  return code;
}

// Before it is called: from there on the other side may have it.
ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static const auto real = next<ssize_t (*)(int, const msghdr*, int)>("sendmsg");
  if (message->msg_iovlen > 0) {
    const iovec& first = message->msg_iov[0];
    note(Witnessed::Event::Kind::sent, {static_cast<const char*>(first.iov_base), first.iov_len});
  }
  return real(socket, message, flags);
}

}  // extern "C"
