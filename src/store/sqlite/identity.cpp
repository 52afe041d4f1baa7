#include "store/sqlite/identity.hpp"

#include "core/transitions.hpp"
#include "store/sqlite/visit_records.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>

#include <algorithm>
#include <set>

namespace idem::sqlite {
namespace {

using Problem = std::optional<std::string>;

/// A row of digest_secrets.
struct SecretEpoch {
  std::uint64_t from = 0;  ///< The first generation.
  std::string id;
};

/// Of the live records.
struct Census {
  bool empty = true;
  bool complete = true;  ///< False: some row cannot be read, and may be of any generation.
  std::set<std::uint64_t> generations;

  bool has(std::uint64_t from, std::uint64_t end) const {
    const auto first = generations.lower_bound(from);
    return !complete || (first != generations.end() && *first < end);
  }
};

Census take_census(sqlite3* db, StoreTime now) {
  Census census;
  visit_records(db, [&](const Record* record) {
    if (record != nullptr && !transitions::is_live(*record, now)) return true;
    census.empty = false;
    if (record == nullptr) {
      census.complete = false;
    } else {
      census.generations.insert(record->generation);
    }
    return true;
  });
  return census;
}

Problem other_setting(std::string_view name, const std::string& recorded,
                      const std::string& asked) {
  if (recorded == asked) return std::nullopt;
  return std::string(name) + " is '" + recorded + "' since the first start, and '" + asked +
         "' was asked for: every key would be looked up under another name and run again";
}

std::string missing_secret(const std::string& id, bool configured) {
  return "it holds records made under the secret " + id + ", which is not given: their retries " +
         "would run again; " +
         (configured ? "give its file, too, behind the others, until they are gone"
                     : "give its file (--secret-file) as before");
}

class IdentityOpener {
 public:
  IdentityOpener(sqlite3* db, Meta& meta, const IdentitySettings& asked, StoreTime now)
      : db_(db), meta_(meta), asked_(asked), now_(now) {}

  std::expected<Identity, std::string> open() {
    const bool is_new = !meta_.text("secret") && !meta_.integer("generation");
    if (is_new) create();
    if (auto why = read()) return std::unexpected(std::move(*why));
    identity_.secret = asked_.secrets.empty() ? identity_.scope_secret : asked_.secrets.front();
    // A store from before version 2 of the schema: its own secret made everything.
    if (epochs_.empty()) {
      begin_epoch(1, secret_id(is_new ? identity_.secret : identity_.scope_secret));
    }
    if (auto why = settle()) return std::unexpected(std::move(*why));
    return std::move(identity_);
  }

 private:
  void create() {
    Secret own;
    random_bytes(own);
    meta_.put_bytes("secret", own);
    meta_.put_integer("generation", 1);
    meta_.put_text("key_scope", asked_.key_scope);
    meta_.put_text("scope_source", asked_.scope_source);
  }

  Problem read() {
    const auto own = meta_.text("secret");
    const auto generation = meta_.integer("generation");
    const auto key_scope = meta_.text("key_scope");
    const auto scope_source = meta_.text("scope_source");
    if (!own || own->size() != identity_.scope_secret.size() || !generation || *generation < 1 ||
        !key_scope || !scope_source) {
      return "its identity is damaged: without the secret no record can be found";
    }
    std::ranges::transform(*own, identity_.scope_secret.begin(),
                           [](char c) { return static_cast<std::uint8_t>(c); });
    identity_.generation = static_cast<std::uint64_t>(*generation);
    key_scope_ = *key_scope;
    scope_source_ = *scope_source;
    Statement rows(db_, "SELECT generation, id FROM digest_secrets ORDER BY generation");
    while (rows.step()) {
      epochs_.push_back({static_cast<std::uint64_t>(rows.integer(0)), std::string(rows.bytes(1))});
    }
    return std::nullopt;
  }

  Problem settle() {
    Problem other = other_setting("key_scope", key_scope_, asked_.key_scope);
    if (!other) other = other_setting("scope_source", scope_source_, asked_.scope_source);
    const bool same_secret = epochs_.back().id == secret_id(identity_.secret);
    if (!other && same_secret && epochs_.size() == 1) return std::nullopt;

    const Census census = take_census(db_, now_);
    if (other && !census.empty) return other;
    if (auto why = keep_older_secrets(census)) return why;
    if (other || !same_secret) begin_generation();
    return std::nullopt;
  }

  /// Finds the secret of each epoch that has records left, and forgets the epochs that have none.
  Problem keep_older_secrets(const Census& census) {
    for (std::size_t i = 0; i < epochs_.size(); ++i) {
      const bool last = i + 1 == epochs_.size();
      const auto end = last ? identity_.generation + 1 : epochs_[i + 1].from;
      if (!census.has(epochs_[i].from, end)) {
        if (!last) forget_epoch(epochs_[i].from);
        continue;
      }
      const Secret* secret = given(epochs_[i].id);
      if (secret == nullptr) return missing_secret(epochs_[i].id, !asked_.secrets.empty());
      if (*secret == identity_.secret) continue;
      std::erase(identity_.older, *secret);
      identity_.older.insert(identity_.older.begin(), *secret);
    }
    return std::nullopt;
  }

  const Secret* given(const std::string& id) const {
    for (const Secret& secret : asked_.secrets) {
      if (secret_id(secret) == id) return &secret;
    }
    return secret_id(identity_.scope_secret) == id ? &identity_.scope_secret : nullptr;
  }

  void begin_generation() {
    meta_.put_integer("generation", static_cast<std::int64_t>(++identity_.generation));
    meta_.put_text("key_scope", asked_.key_scope);
    meta_.put_text("scope_source", asked_.scope_source);
    if (epochs_.back().id == secret_id(identity_.secret)) return;
    begin_epoch(identity_.generation, secret_id(identity_.secret));
  }

  void begin_epoch(std::uint64_t from, std::string id) {
    Statement insert(db_, "INSERT INTO digest_secrets VALUES (?1, ?2)");
    insert.bind(1, static_cast<std::int64_t>(from));
    insert.bind_text(2, id);
    insert.run();
    epochs_.push_back({from, std::move(id)});
  }

  void forget_epoch(std::uint64_t from) {
    Statement forget(db_, "DELETE FROM digest_secrets WHERE generation = ?1");
    forget.bind(1, static_cast<std::int64_t>(from));
    forget.run();
  }

  sqlite3* db_;
  Meta& meta_;
  const IdentitySettings& asked_;
  StoreTime now_;
  Identity identity_;
  std::string key_scope_;
  std::string scope_source_;
  std::vector<SecretEpoch> epochs_;
};

}  // namespace

std::expected<Identity, std::string> settle_identity(sqlite3* db, Meta& meta,
                                                     const IdentitySettings& asked, StoreTime now) {
  if (asked.key_scope != "operation" && asked.key_scope != "tenant") {
    return std::unexpected("key_scope '" + asked.key_scope +
                           "' is none; write operation or tenant");
  }
  if (asked.secrets.size() > limits::secrets_max) {
    return std::unexpected("more than " + std::to_string(limits::secrets_max) + " secrets");
  }
  return IdentityOpener(db, meta, asked, now).open();
}

}  // namespace idem::sqlite
