#include <idem/store.hpp>

#include <type_traits>

namespace idem {

static_assert(std::is_nothrow_move_constructible_v<AnyVerb>);
static_assert(std::is_nothrow_move_assignable_v<AnyVerb>);
static_assert(std::is_nothrow_move_constructible_v<AnyReply>);
static_assert(std::is_nothrow_move_assignable_v<AnyReply>);

StoreCall::StoreCall(const StoreCall&) = default;
StoreCall::StoreCall(StoreCall&&) noexcept = default;
StoreCall& StoreCall::operator=(const StoreCall&) = default;
StoreCall& StoreCall::operator=(StoreCall&&) noexcept = default;
StoreCall::~StoreCall() = default;

StoreReply::StoreReply(const StoreReply&) = default;
StoreReply::StoreReply(StoreReply&&) noexcept = default;
StoreReply& StoreReply::operator=(const StoreReply&) = default;
StoreReply& StoreReply::operator=(StoreReply&&) noexcept = default;
StoreReply::~StoreReply() = default;

}  // namespace idem
