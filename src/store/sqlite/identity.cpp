#include "store/sqlite/identity.hpp"

#include "core/naming/identity_settling.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/which_store.hpp"
#include "core/transitions/transitions.hpp"
#include "store/sqlite/tolerant_rows.hpp"
#include "store/sqlite/visit_records.hpp"

#include <idem/fingerprint.hpp>

#include <algorithm>

namespace idem::sqlite {
namespace {

void add(GenerationCensus& census, const Record* record, StoreTime now) {
  if (record != nullptr && !transitions::is_live(*record, now)) return;
  census.empty = false;
  if (record == nullptr) {
    census.complete = false;
  } else {
    census.generations.insert(record->generation);
  }
}

GenerationCensus take_census(sqlite3* db, StoreTime now) {
  GenerationCensus census;
  visit_records(db, [&](const Record* record) {
    add(census, record, now);
    return true;
  });
  return census;
}

/// Of a file that may be damaged: what cannot be read counts as a record of any generation.
GenerationCensus take_tolerant_census(sqlite3* db, StoreTime now) {
  GenerationCensus census;
  TolerantRows rows(db, records_sql);
  while (rows.step()) {
    RecordId id;
    rows.bytes(0).copy(reinterpret_cast<char*>(id.bytes.data()), id.bytes.size());
    const auto record = decode_record(id, rows.bytes(1));
    add(census, record ? &*record : nullptr, now);
  }
  if (!rows.failure().empty()) add(census, nullptr, now);
  return census;
}

/// None: the file is new.
std::expected<std::optional<RecordedIdentity>, std::string> read(sqlite3* db, Meta& meta) {
  const auto own = meta.text("secret");
  const auto generation = meta.integer("generation");
  if (!own && !generation) return std::nullopt;
  auto key_scope = meta.text("key_scope");
  auto scope_source = meta.text("scope_source");
  RecordedIdentity recorded;
  if (!own || own->size() != recorded.own.size() || !generation || *generation < 1 || !key_scope ||
      !scope_source) {
    return std::unexpected(
        std::string("its identity is damaged: without the secret no record can be found"));
  }
  std::ranges::transform(*own, recorded.own.begin(),
                         [](char c) { return static_cast<std::uint8_t>(c); });
  recorded.generation = static_cast<std::uint64_t>(*generation);
  recorded.key_scope = std::move(*key_scope);
  recorded.scope_source = std::move(*scope_source);
  Statement rows(db, "SELECT generation, id FROM idem_digest_secrets ORDER BY generation");
  while (rows.step()) {
    recorded.epochs.push_back(
        {static_cast<std::uint64_t>(rows.integer(0)), std::string(rows.bytes(1))});
  }
  return recorded;
}

void write(sqlite3* db, Meta& meta, const RecordedIdentity& recorded) {
  meta.put_bytes("secret", recorded.own);
  meta.put_integer("generation", static_cast<std::int64_t>(recorded.generation));
  meta.put_text("key_scope", recorded.key_scope);
  meta.put_text("scope_source", recorded.scope_source);
  Statement(db, "DELETE FROM idem_digest_secrets").run();
  Statement insert(db, "INSERT INTO idem_digest_secrets VALUES (?1, ?2)");
  for (const SecretEpoch& epoch : recorded.epochs) {
    insert.bind(1, static_cast<std::int64_t>(epoch.from));
    insert.bind_text(2, epoch.id);
    insert.run();
  }
  meta.digest_secrets_changed();
}

}  // namespace

std::expected<Identity, std::string> settle_identity(sqlite3* db, Meta& meta,
                                                     const IdentitySettings& asked,
                                                     const WhichStore& which, StoreTime now) {
  auto recorded = read(db, meta);
  if (!recorded) return std::unexpected(std::move(recorded.error()));
  const auto before = *recorded;
  const auto census = [&] { return take_census(db, now); };
  auto identity = idem::settle_identity(*recorded, asked, census, which);
  if (identity && *recorded != before) write(db, meta, **recorded);
  return identity;
}

std::string contradiction(sqlite3* db, sqlite3* meta_db, Meta& meta, const IdentitySettings& asked,
                          StoreTime now) {
  auto recorded = read(meta_db, meta);
  if (!recorded) return std::move(recorded.error());
  if (!*recorded) return {};
  const auto census = [&] { return take_tolerant_census(db, now); };
  const auto identity =
      idem::settle_identity(*recorded, asked, census, {.make = false, .look = true});
  return identity ? std::string() : identity.error();
}

std::expected<OpenedStore, std::string> settle_store_id(Meta& meta, const WhichStore& which) {
  const bool is_new = !meta.integer("generation");
  const auto kept = meta.text("store_id");
  StoreId id{};
  if (kept && kept->size() == id.size()) {
    std::ranges::transform(*kept, id.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
  } else {
    random_bytes(id);
  }
  if (auto why = why_not(which, is_new ? std::nullopt : std::optional(id))) {
    return std::unexpected(std::move(*why));
  }
  if (!kept) meta.put_bytes("store_id", id);
  return OpenedStore{.id = store_id_text(id), .is_new = is_new};
}

}  // namespace idem::sqlite
