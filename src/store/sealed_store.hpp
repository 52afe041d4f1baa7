#pragma once

#include <idem/open_store.hpp>
#include <idem/record.hpp>

#include <functional>
#include <memory>

namespace idem {

/// A store wrapper that encrypts what a record keeps of its request and its answer: on the way in
/// the request of an Accept, the answers of Complete, Resolve and of a service's transaction, and
/// an answer in the evidence log, and the lines of journals (sealed_journals.hpp); on the way out
/// all of them. `inner`, and a cache in it, hold and see sealed bytes only.
///
/// What does not open is StoreError::damaged and names the record: its key never runs, and nothing
/// of it is replayed. A claimed request that does not open is released and rests. The wrapper is
/// also needed without secrets: then it seals nothing, and refuses what is sealed.
///
/// A Reseal that names only the record brings it under the newest key: `wrong_state`: there was
/// nothing to do; `too_early`: its request runs now.
///
/// With EncryptionSettings::key_per_scope nothing is reserved without the key of its scope. An
/// answer whose key an operator deleted is one of which only the status was kept.
///
/// It seals on the caller's thread, and opens on the store's; two steps more only for an attempt
/// that it does not know (limits::sealed_scopes_max): it reads the record's scope first; and for
/// the keys of a scope that are not in memory. `clock`: by which these age.
std::unique_ptr<Store> make_sealed(std::unique_ptr<Store> inner, const EncryptionSettings& settings,
                                   std::function<MonotonicTime()> clock = MonotonicClock::now);

}  // namespace idem
