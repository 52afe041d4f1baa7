#include "gateway/keyed/answers_under_way.hpp"

namespace idem::gateway {

AnswersUnderWay::Copy::~Copy() {
  const std::lock_guard lock(owner->mutex_);
  owner->shares_.give_back(scope, bytes->size());
  const auto found = owner->copies_.find(id);
  if (found != owner->copies_.end() && found->second.expired()) owner->copies_.erase(found);
}

bool AnswersUnderWay::admit(const RecordId& id, const std::string& scope, WireAnswer& answer) {
  return admit(id, scope, answer, true);
}

void AnswersUnderWay::admit_anyhow(const RecordId& id, const std::string& scope,
                                   WireAnswer& answer) {
  admit(id, scope, answer, false);
}

std::shared_ptr<const AnswersUnderWay::Copy> AnswersUnderWay::find(const RecordId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = copies_.find(id);
  return found == copies_.end() ? nullptr : found->second.lock();
}

bool AnswersUnderWay::admit(const RecordId& id, const std::string& scope, WireAnswer& answer,
                            bool may_refuse) {
  const std::size_t size = answer.body_bytes().size();
  if (size < limits::answer_counted_bytes_min) return true;
  // Compares the bytes: a record may be made anew under this id and have another answer.
  auto copy = find(id);
  if (!copy || (copy->bytes != answer.shared_body && *copy->bytes != answer.body_bytes())) {
    auto bytes = answer.shared_body;
    {
      const std::lock_guard lock(mutex_);
      if (!may_refuse) {
        shares_.take_anyhow(scope, size);
      } else if (!shares_.take(scope, size)) {
        return false;
      }
    }
    if (!bytes) bytes = std::make_shared<const std::string>(std::move(answer.body));
    copy.reset();
    copy = std::shared_ptr<const Copy>(new Copy{shared_from_this(), id, scope, std::move(bytes)});
    const std::lock_guard lock(mutex_);
    copies_[id] = copy;
  }
  std::string().swap(answer.body);  // Assigning an empty one would keep its memory.
  const std::string* const bytes = copy->bytes.get();
  answer.shared_body = std::shared_ptr<const std::string>(std::move(copy), bytes);
  return true;
}

}  // namespace idem::gateway
