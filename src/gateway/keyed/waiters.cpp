#include "gateway/keyed/waiters.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::gateway {

// A waiter that is not counted yet asks for its read later than this, and so sees the change.
void Waiters::changed(const RecordId& id) noexcept {
  if (taken_.load() == 0) return;
  bool due = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(id);
    if (found == groups_.end()) return;
    found->second.changed = true;
    due = plan_read(found->second);
  }
  if (due) read(id);
}

std::vector<RecordId> Waiters::awaited() {
  std::vector<RecordId> ids;
  if (taken_.load() == 0) return ids;
  const std::lock_guard lock(mutex_);
  ids.reserve(groups_.size());
  for (const auto& [id, group] : groups_) ids.push_back(id);
  return ids;
}

std::shared_ptr<Waiters::Seat> Waiters::enter(const RecordId& id, Waiter& waiter, Loop& loop) {
  std::shared_ptr<Seat> seat;
  bool due = false;
  {
    const std::lock_guard lock(mutex_);
    if (taken_.load() >= places_) return nullptr;
    const auto found = groups_.find(id);
    const std::size_t waiting = found == groups_.end() ? 0 : found->second.seats.size();
    if (waiting >= limits::waiters_per_key_max) return nullptr;
    if (!waiter.scope_.empty() && !shares_.take(waiter.scope_)) return nullptr;
    Group& group = found == groups_.end() ? groups_[id] : found->second;
    seat = std::make_shared<Seat>(Seat{&loop, &waiter, group.seats.size()});
    group.seats.push_back(seat);
    group.newcomers.push_back(seat);
    taken_.fetch_add(1);
    due = plan_read(group);
  }
  if (due) read(id);
  return seat;
}

void Waiters::leave(const Waiter& waiter, Seat& seat) {
  const std::lock_guard lock(mutex_);
  taken_.fetch_sub(1);
  if (!waiter.scope_.empty()) shares_.give_back(waiter.scope_);
  const auto found = groups_.find(waiter.id_);
  auto& seats = found->second.seats;
  seats.back()->at = seat.at;
  std::swap(seats[seat.at], seats.back());
  seats.pop_back();
  if (seats.empty() && !found->second.reading) groups_.erase(found);
}

bool Waiters::plan_read(Group& group) {
  if (group.reading || (!group.changed && group.newcomers.empty())) return false;
  group.reading = true;
  if (std::exchange(group.changed, false)) {
    group.readers = group.seats;
    group.newcomers.clear();
  } else {
    group.readers = std::exchange(group.newcomers, {});
  }
  return true;
}

void Waiters::read(const RecordId& id) {
  ask(store_, Find{id},
      [self = shared_from_this(), id](auto result) { self->on_read(id, std::move(result)); });
}

void Waiters::on_read(const RecordId& id, std::expected<std::optional<Record>, StoreError> result) {
  News news{.woken = {std::shared_ptr<const Record>()}};
  if (!result) {
    news.woken.record = std::unexpected(std::move(result.error()));
  } else if (*result) {
    drop_request(**result);
    news.woken.record = std::make_shared<const Record>(std::move(**result));
  }
  Seats seats;
  bool due = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(id);
    Group& group = found->second;
    seats = std::exchange(group.readers, {});
    group.reading = false;
    news.read = ++group.reads;
    if (group.seats.empty()) {
      groups_.erase(found);
    } else {
      due = plan_read(group);
    }
  }
  if (due) read(id);
  std::ranges::sort(seats, {}, [](const auto& seat) { return seat->loop; });
  for (auto first = seats.begin(); first != seats.end();) {
    Loop& loop = *(*first)->loop;
    auto last =
        std::find_if(first, seats.end(), [&loop](const auto& seat) { return seat->loop != &loop; });
    deliver(loop, Seats(std::make_move_iterator(first), std::make_move_iterator(last)), news);
    first = last;
  }
}

// In portions, between which the loop serves others: thousands may wait for one record, and each
// has an answer made and written.
void Waiters::deliver(Loop& loop, Seats seats, const News& news) {
  loop.post([&loop, seats = std::move(seats), news]() mutable {
    const std::size_t portion = std::min(seats.size(), limits::wakes_per_turn);
    for (std::size_t i = 0; i < portion; ++i) {
      auto& seat = seats[seats.size() - 1 - i];
      if (seat->waiter != nullptr) seat->waiter->wake(news);
    }
    seats.resize(seats.size() - portion);
    if (!seats.empty()) deliver(loop, std::move(seats), news);
  });
}

Waiter::Waiter(std::shared_ptr<Waiters> waiters, http::ServerStream& client, const RecordId& id,
               std::string scope)
    : Timed(client.loop()),
      waiters_(std::move(waiters)),
      client_(client),
      id_(id),
      scope_(std::move(scope)) {
  seat_ = waiters_->enter(id_, *this, loop_);
}

Waiter::~Waiter() {
  if (!seat_) return;
  seat_->waiter = nullptr;
  waiters_->leave(*this, *seat_);
}

Task<ExchangeEvent> Waiter::wait(MonotonicTime until) {
  until_ = until;
  bool stays = seat_ != nullptr;
  while (stays && !news_ && !client_.draining() && MonotonicClock::now() < until_) {
    stays = co_await client_.park();
  }
  until_ = MonotonicTime::max();
  if (!news_) co_return WaitOver{};
  Woken news = std::move(*news_);
  news_.reset();
  co_return news;
}

void Waiter::wake(const Waiters::News& news) {
  if (news.read < newest_read_) return;
  newest_read_ = news.read;
  news_ = news.woken;
  client_.unpark();
}

void Waiter::tick(MonotonicTime now) {
  if (now >= until_) client_.unpark();
}

}  // namespace idem::gateway
