#pragma once

#include <idem/store.hpp>

#include <array>
#include <utility>

/// The properties of a verb that the queues, the circuit breaker and the drivers need: one row
/// each.
namespace idem {

struct VerbTraits {
  bool is_owners = false;          ///< Of one attempt, by its token.
  bool is_new_work = false;        ///< A full queue refuses it: no attempt needs it.
  bool is_deferred = false;        ///< No client waits for it: it joins the next batch.
  bool may_be_refused = false;     ///< While the store fails: no attempt and no decision needs it.
  bool asks_for_a_record = false;  ///< It makes a reservation.
  bool is_repeatable = false;      ///< After a lost reply a repeat does nothing more.
  bool is_lifecycle = false;  ///< Of all due records; on one record a repeat does nothing more.
  bool only_reads = false;    ///< The store writes nothing for it.
  bool ends_attempt = false;  ///< It settles, releases or gives up its attempt.
  bool may_end_transaction = false;  ///< A service's transaction may commit with it.
  bool may_take_long = false;  ///< Of many records or lines: its time does not measure the store.
};

/// A verb without a row does not compile.
template <class Verb>
inline constexpr VerbTraits traits_of_verb = [] {
  static_assert(sizeof(Verb) == 0, "give this verb a row in store/verb_traits.hpp");
  return VerbTraits{};
}();

inline constexpr VerbTraits reserving{
    .is_new_work = true, .may_be_refused = true, .asks_for_a_record = true, .is_repeatable = true};
inline constexpr VerbTraits owning{.is_owners = true, .is_repeatable = true};
inline constexpr VerbTraits reading{
    .is_new_work = true, .may_be_refused = true, .is_repeatable = true, .only_reads = true};
inline constexpr VerbTraits reading_many{.is_new_work = true,
                                         .may_be_refused = true,
                                         .is_repeatable = true,
                                         .only_reads = true,
                                         .may_take_long = true};
inline constexpr VerbTraits lifecycle{.is_new_work = true,
                                      .is_deferred = true,
                                      .may_be_refused = true,
                                      .is_lifecycle = true,
                                      .may_take_long = true};

template <>
inline constexpr VerbTraits traits_of_verb<Reserve> = reserving;
template <>
inline constexpr VerbTraits traits_of_verb<Accept> = reserving;
/// A repeat claims another request.
template <>
inline constexpr VerbTraits traits_of_verb<Claim> = {
    .is_new_work = true, .may_be_refused = true, .asks_for_a_record = true};
template <>
inline constexpr VerbTraits traits_of_verb<Dispatched> = owning;
template <>
inline constexpr VerbTraits traits_of_verb<Renew> = owning;
template <>
inline constexpr VerbTraits traits_of_verb<Advance> = {
    .is_owners = true, .is_repeatable = true, .may_end_transaction = true};
template <>
inline constexpr VerbTraits traits_of_verb<Complete> = {
    .is_owners = true, .is_repeatable = true, .ends_attempt = true, .may_end_transaction = true};
template <>
inline constexpr VerbTraits traits_of_verb<Release> = {
    .is_owners = true, .is_repeatable = true, .ends_attempt = true};
template <>
inline constexpr VerbTraits traits_of_verb<MarkUnknown> = {
    .is_owners = true, .is_repeatable = true, .ends_attempt = true, .may_end_transaction = true};
/// These append a line to the evidence log each time.
template <>
inline constexpr VerbTraits traits_of_verb<Resolve> = {.is_deferred = true};
template <>
inline constexpr VerbTraits traits_of_verb<CacheBust> = {};
template <>
inline constexpr VerbTraits traits_of_verb<Reschedule> = {.is_new_work = true, .is_deferred = true};
/// A repeat finds that its form is stored already: `superseded`.
template <>
inline constexpr VerbTraits traits_of_verb<Reseal> = {.is_new_work = true,
                                                      .is_deferred = true,
                                                      .may_be_refused = true,
                                                      .is_repeatable = true,
                                                      .may_take_long = true};
/// An owner that lost its record reads the outcome by it, so no queue refuses it.
template <>
inline constexpr VerbTraits traits_of_verb<Find> = {
    .may_be_refused = true, .is_repeatable = true, .only_reads = true};
template <>
inline constexpr VerbTraits traits_of_verb<List> = reading_many;
template <>
inline constexpr VerbTraits traits_of_verb<ReadEvidence> = reading;
template <>
inline constexpr VerbTraits traits_of_verb<Count> = reading;
/// Their replies report each step once.
template <>
inline constexpr VerbTraits traits_of_verb<Sweep> = lifecycle;
template <>
inline constexpr VerbTraits traits_of_verb<Reap> = lifecycle;
template <>
inline constexpr VerbTraits traits_of_verb<AdoptRoutes> = {.is_new_work = true,
                                                           .may_take_long = true};
/// A decision is noted before it is made, so nothing refuses these two in advance.
template <>
inline constexpr VerbTraits traits_of_verb<AppendLine> = {.may_take_long = true};
template <>
inline constexpr VerbTraits traits_of_verb<ReadLines> = {
    .is_repeatable = true, .only_reads = true, .may_take_long = true};
template <>
inline constexpr VerbTraits traits_of_verb<ListJournals> = reading_many;
template <>
inline constexpr VerbTraits traits_of_verb<DropJournal> = {.is_new_work = true,
                                                           .may_take_long = true};
/// Its reply says what the log had before.
template <>
inline constexpr VerbTraits traits_of_verb<PutRecord> = {
    .is_new_work = true, .is_deferred = true, .may_take_long = true};

/// The row of the call's verb.
inline const VerbTraits& traits_of(const StoreCall& call) noexcept {
  static constexpr auto rows = []<std::size_t... n>(std::index_sequence<n...>) {
    return std::array{traits_of_verb<std::variant_alternative_t<n, AnyVerb>>...};
  }(std::make_index_sequence<std::variant_size_v<AnyVerb>>());
  return rows[call.index()];
}

}  // namespace idem
