#include "core/naming/identity_settling.hpp"

#include "core/naming/copied_identity.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>

#include <algorithm>

namespace idem {
namespace {

using Problem = std::optional<std::string>;

Problem other_setting(std::string_view name, const std::string& recorded,
                      const std::string& asked) {
  if (recorded == asked) return std::nullopt;
  if (recorded.empty()) {
    return "its records are of services without a " + std::string(name) + ", and '" + asked +
           "' is configured now: retries would not find their records and would run again; give "
           "the gateway a store of its own";
  }
  return std::string(name) + " is '" + recorded + "' since the first start, and '" + asked +
         "' is configured now: retries would not find their records and would run again; write '" +
         recorded + "' again";
}

std::string missing_secret(const std::string& id, bool configured) {
  return "it holds records made under the secret " + id + ", which is not given: their retries " +
         "would run again; " +
         (configured ? "give its file, too, after the others, until those records are gone"
                     : "give its file (--secret-file) as before");
}

RecordedIdentity first_identity(const IdentitySettings& asked) {
  RecordedIdentity recorded{.key_scope = asked.key_scope, .scope_source = asked.scope_source};
  random_bytes(recorded.own);
  const Secret& secret = asked.secrets.empty() ? recorded.own : asked.secrets.front();
  recorded.epochs.push_back({1, secret_id(secret)});
  return recorded;
}

class Settling {
 public:
  Settling(RecordedIdentity& recorded, const IdentitySettings& asked)
      : recorded_(recorded), asked_(asked) {
    identity_.scope_secret = recorded.own;
    identity_.secret = asked.secrets.empty() ? recorded.own : asked.secrets.front();
    if (recorded.epochs.empty()) recorded.epochs.push_back({1, secret_id(recorded.own)});
  }

  Problem settle(const std::function<GenerationCensus()>& take_census) {
    Problem other = other_setting("key.scope", recorded_.key_scope, asked_.key_scope);
    if (!other) other = other_setting("scope.from", recorded_.scope_source, asked_.scope_source);
    const bool same_secret = recorded_.epochs.back().id == secret_id(identity_.secret);
    if (!other && same_secret && recorded_.epochs.size() == 1) return std::nullopt;

    const GenerationCensus census = take_census();
    if (other && !census.empty) return other;
    if (auto why = keep_older_secrets(census)) return why;
    if (other || !same_secret) begin_generation();
    return std::nullopt;
  }

  Identity take() {
    identity_.generation = recorded_.generation;
    return std::move(identity_);
  }

 private:
  /// Finds the secret of each epoch that has records left, and forgets the epochs that have none.
  Problem keep_older_secrets(const GenerationCensus& census) {
    auto& epochs = recorded_.epochs;
    std::vector<SecretEpoch> kept;
    for (std::size_t i = 0; i < epochs.size(); ++i) {
      const bool last = i + 1 == epochs.size();
      const auto end = last ? recorded_.generation + 1 : epochs[i + 1].from;
      const bool has_records = census.has(epochs[i].from, end);
      if (has_records || last) kept.push_back(epochs[i]);
      if (!has_records) continue;
      const Secret* secret = secret_of(epochs[i].id);
      if (secret == nullptr) return missing_secret(epochs[i].id, !asked_.secrets.empty());
      if (*secret == identity_.secret) continue;
      std::erase(identity_.older, *secret);
      identity_.older.insert(identity_.older.begin(), *secret);
    }
    epochs = std::move(kept);
    return std::nullopt;
  }

  const Secret* secret_of(const std::string& id) const {
    for (const Secret& secret : asked_.secrets) {
      if (secret_id(secret) == id) return &secret;
    }
    return secret_id(recorded_.own) == id ? &recorded_.own : nullptr;
  }

  void begin_generation() {
    ++recorded_.generation;
    recorded_.key_scope = asked_.key_scope;
    recorded_.scope_source = asked_.scope_source;
    const std::string id = secret_id(identity_.secret);
    if (recorded_.epochs.back().id != id) recorded_.epochs.push_back({recorded_.generation, id});
  }

  RecordedIdentity& recorded_;
  const IdentitySettings& asked_;
  Identity identity_;
};

}  // namespace

GenerationCensus present_generation(const RecordedIdentity& recorded) {
  return {.empty = false, .generations = {recorded.generation}};
}

std::optional<std::string> why_not_named_by(const RecordedIdentity& recorded,
                                            const IdentitySettings& settings) {
  if (auto why = why_marked(recorded.key_scope)) return why;
  const Secret& secret = settings.secrets.empty() ? recorded.own : settings.secrets.front();
  const bool is_same = recorded.key_scope == settings.key_scope &&
                       recorded.scope_source == settings.scope_source && !recorded.epochs.empty() &&
                       recorded.epochs.back().id == secret_id(secret);
  if (is_same) return std::nullopt;
  return "another node began to name records under other settings or another secret; start this "
         "one again with the same";
}

bool GenerationCensus::has(std::uint64_t from, std::uint64_t end) const {
  const auto first = generations.lower_bound(from);
  return !complete || (first != generations.end() && *first < end);
}

std::expected<Identity, std::string> settle_identity(
    std::optional<RecordedIdentity>& recorded, const IdentitySettings& asked_for,
    const std::function<GenerationCensus()>& census, const WhichStore& which) {
  const auto contradict = [&](std::string why) {
    if (which.contradicted) which.contradicted();
    return std::unexpected(std::move(why));
  };
  if (which.copied) return settle_copied(recorded, *which.copied);
  if (recorded) {
    if (auto why = why_marked(recorded->key_scope)) return contradict(std::move(*why));
  }
  IdentitySettings asked = asked_for;
  const bool follows = !which.make && recorded && asked.scope_source.empty();
  if (follows) {
    asked.key_scope = recorded->key_scope;
    asked.scope_source = recorded->scope_source;
  }
  if (asked.key_scope != "operation" && asked.key_scope != "tenant") {
    return contradict("key.scope '" + asked.key_scope +
                      "' is no key scope; write operation or tenant");
  }
  if (asked.secrets.size() > limits::secrets_max) {
    return contradict("more than " + std::to_string(limits::secrets_max) + " secrets");
  }
  if (which.look && !recorded) return std::unexpected("no gateway has started on it yet");
  RecordedIdentity next = recorded ? *recorded : first_identity(asked);
  Settling settling(next, asked);
  if (auto why = settling.settle(census)) return contradict(std::move(*why));
  // No contradiction: a gateway that starts with these settings ends it.
  const bool chooses = which.make || (which.look && !follows);
  if (!chooses && recorded && next.generation != recorded->generation) {
    return std::unexpected(
        "its records are named by another scope, key.scope or secret than is given here; leave "
        "scope and key.scope out, and give the gateway's --secret-file");
  }
  // What a look would record is none of its identity.
  if (!which.look) recorded = next;
  return settling.take();
}

}  // namespace idem
