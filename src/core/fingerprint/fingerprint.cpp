#include <idem/fingerprint.hpp>

#include "core/bytes/ascii.hpp"
#include "core/bytes/digests.hpp"
#include "core/fingerprint/body_form.hpp"
#include "core/fingerprint/form_fields.hpp"
#include "core/fingerprint/media_type.hpp"
#include "core/json/selection.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

#include <openssl/rand.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <climits>

namespace idem::inline v0_1 {
namespace {

using Names = std::vector<std::string>;

Names sorted(Names names) {
  std::ranges::sort(names);
  const auto twins = std::ranges::unique(names);
  names.erase(twins.begin(), twins.end());
  return names;
}

FingerprintRule sorted(const FingerprintRule& rule) {
  Names headers = rule.headers;
  for (std::string& name : headers) name = lower_case(name);
  return {sorted(rule.include), sorted(rule.exclude), sorted(std::move(headers))};
}

void add_names(Frames& frames, const Names& names) {
  frames.add_number(names.size());
  for (const std::string& name : names) frames.add(name);
}

using HeaderLine = std::pair<std::string, std::string_view>;

/// Without those that count by a rule alone.
std::vector<std::string_view> always_counted(std::span<const std::string_view> chosen) {
  std::vector<std::string_view> always;
  for (std::size_t i = 0; i + 1 < chosen.size(); i += 2) {
    if (counts_always(chosen[i])) always.insert(always.end(), {chosen[i], chosen[i + 1]});
  }
  return always;
}

std::vector<HeaderLine> lines_of(std::span<const std::string_view> chosen) {
  IDEM_ASSERT(chosen.size() % 2 == 0);
  std::vector<HeaderLine> lines;
  for (std::size_t i = 0; i < chosen.size(); i += 2) {
    lines.emplace_back(lower_case(chosen[i]), chosen[i + 1]);
  }
  return lines;
}

// Lines of one name keep their order; the order of different names does not count (RFC 9110 §5.3).
void add_chosen_headers(Frames& frames, std::span<const std::string_view> chosen) {
  auto lines = lines_of(chosen);
  std::ranges::stable_sort(lines, {}, &HeaderLine::first);
  frames.add_number(chosen.size());
  for (const auto& [name, value] : lines) {
    frames.add(name);
    frames.add(value);
  }
}

void add_rule(Frames& frames, const FingerprintRule& rule) {
  add_names(frames, rule.include);
  add_names(frames, rule.exclude);
  add_names(frames, rule.headers);
}

RuleName name_of(const FingerprintRule& rule) {
  if (rule.empty()) return {};
  Frames frames;
  frames.add("idem fingerprint rule");
  add_rule(frames, rule);
  const Digest full = sha256(frames.bytes());
  RuleName name;
  std::copy_n(full.begin(), name.size(), name.begin());
  return name;
}

/// The codings in their order, without `identity`.
std::string codings_of(std::span<const std::string_view> lines) {
  std::string codings;
  const auto add = [&codings](std::string_view coding) {
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!coding.empty() && is_blank(coding.front())) coding.remove_prefix(1);
    while (!coding.empty() && is_blank(coding.back())) coding.remove_suffix(1);
    const std::string name = lower_case(coding);
    if (name.empty() || name == "identity") return;
    codings += codings.empty() ? "" : ",";
    codings += name;
  };
  for (std::string_view line : lines) {
    for (auto comma = line.find(','); comma != line.npos; comma = line.find(',')) {
      add(line.substr(0, comma));
      line.remove_prefix(comma + 1);
    }
    add(line);
  }
  return codings;
}

// An encoded body cannot be read, so its raw bytes count.
BodyForm form_by(const FingerprintRule& rule, const FingerprintParts& parts, std::string_view media,
                 std::string_view codings) {
  if (!codings.empty()) return raw_form(parts.body);
  return body_form(media, parts.content_type, parts.body, rule);
}

/// What differs between the two digests of a request; all else of their frames is the same.
struct Framing {
  std::string_view target;
  std::string_view media;
  std::string_view tag;
  const Digest& body;
};

std::string frame(const FingerprintParts& parts, std::span<const std::string_view> headers,
                  const FingerprintRule& rule, const Framing& by, std::string_view codings = {}) {
  Frames frames(256 + by.target.size());
  frames.add_number(fingerprint_version);
  frames.add(parts.method);
  frames.add(by.target);
  frames.add(by.media);
  add_chosen_headers(frames, headers);
  add_rule(frames, rule);
  frames.add(by.tag);
  frames.add(view_of(by.body));
  if (!codings.empty()) frames.add(codings);
  return frames.bytes();
}

// Another media type of one kind of body says nothing else.
std::string_view media_of(BodyKind kind) noexcept {
  switch (kind) {
    case BodyKind::json:
      return "application/json";
    case BodyKind::form:
      return "application/x-www-form-urlencoded";
    case BodyKind::unread:
    case BodyKind::empty:
      break;
  }
  return {};
}

bool is_field_name(std::string_view name) {
  static constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           others.find(c) != others.npos;
  };
  return !name.empty() && std::ranges::all_of(name, fits);
}

}  // namespace

std::expected<void, std::string> check_rule(const FingerprintRule& rule) {
  for (const Names* names : {&rule.include, &rule.exclude, &rule.headers}) {
    if (names->size() <= limits::fingerprint_rule_entries_max) continue;
    return std::unexpected("more than " + std::to_string(limits::fingerprint_rule_entries_max) +
                           " entries in one list");
  }
  for (const std::string& name : rule.headers) {
    if (!is_field_name(name)) return std::unexpected('"' + name + "\" is no field name");
  }
  const auto selection = JsonSelection::parse(rule.include, rule.exclude);
  if (!selection) return std::unexpected(selection.error());
  return {};
}

RequestDigest::RequestDigest(const FingerprintParts& parts) {
  add(parts);
  if (parts.as_sent == nullptr) return;
  FingerprintParts encoded = parts;
  encoded.body = parts.as_sent->body;
  encoded.content_encoding = parts.as_sent->content_encoding;
  add(encoded);
}

void RequestDigest::add(const FingerprintParts& parts) {
  const FingerprintRule rule = parts.rule ? sorted(*parts.rule) : FingerprintRule{};
  add(parts, parts.chosen_headers, rule);
  // The record may be older than the rule; its fingerprint was then made without one.
  if (rule.empty()) return;
  const auto always = always_counted(parts.chosen_headers);
  add(parts, always, {});
}

void RequestDigest::add(const FingerprintParts& parts, std::span<const std::string_view> headers,
                        const FingerprintRule& rule) {
  const std::string media = media_type(parts.content_type);
  const std::string codings = codings_of(parts.content_encoding);
  const BodyForm body = form_by(rule, parts, media, codings);
  Framed framed{name_of(rule),
                frame(parts, headers, rule, {parts.target, media, body.tag, body.digest}, codings),
                body.kind};
  // As in most requests: then both frames are one, and the second is not made.
  const bool is_plain = body.values == body.digest && media == media_of(body.kind) &&
                        parts.target.find_first_of("%?") == parts.target.npos;
  if (body.kind != BodyKind::unread && !is_plain) {
    const std::string target = target_values(parts.target);
    framed.values =
        frame(parts, headers, rule, {target, media_of(body.kind), body.tag, body.values});
    if (framed.values == framed.bytes) framed.values.clear();
  }
  framed_.push_back(std::move(framed));
}

std::vector<Fingerprint> RequestDigest::under(const Secret& secret) const {
  static constexpr std::size_t kind_at = RuleName{}.size();
  static constexpr std::size_t rest_at = kind_at + ValuesName{}.size();
  thread_local KeyedDigest digest("idem fingerprint");
  std::vector<Fingerprint> fingerprints;
  fingerprints.reserve(framed_.size());
  for (const Framed& framed : framed_) {
    // The rest of the digest is as long as a record's handle.
    Fingerprint made{fingerprint_version, digest.of(secret, framed.bytes)};
    if (!framed.values.empty()) {
      const Digest values = digest.of(secret, framed.values);
      std::copy(values.begin() + kind_at, values.begin() + rest_at, made.digest.begin() + kind_at);
    } else if (framed.kind == BodyKind::unread) {
      std::fill(made.digest.begin() + kind_at, made.digest.begin() + rest_at, std::uint8_t{0});
    }
    std::ranges::copy(framed.rule, made.digest.begin());
    made.digest[kind_at] = static_cast<std::uint8_t>(framed.kind);
    fingerprints.push_back(made);
  }
  return fingerprints;
}

Fingerprint fingerprint(const Secret& secret, const FingerprintParts& parts) {
  return RequestDigest(parts).under(secret).front();
}

RecordId record_id(const Secret& secret, std::string_view scope, std::string_view operation,
                   std::string_view key) {
  Frames frames(24 + scope.size() + operation.size() + key.size());
  frames.add(scope);
  frames.add(operation);
  frames.add(key);

  thread_local KeyedDigest digest("idem record id");
  const Digest full = digest.of(secret, frames.bytes());
  RecordId id;
  std::copy_n(full.begin(), id.bytes.size(), id.bytes.begin());
  return id;
}

Secret secret_from(std::string_view material) {
  while (material.ends_with('\n') || material.ends_with('\r')) material.remove_suffix(1);
  Frames frames(64);
  frames.add("idem secret file");
  frames.add(material);
  return sha256(frames.bytes());
}

std::string secret_id(const Secret& secret) {
  thread_local KeyedDigest digest("idem secret id");
  return to_hex(digest.of(secret, "")).substr(0, 16);
}

std::string credential_digest(const Secret& secret, std::string_view credential) {
  thread_local KeyedDigest digest("idem credential");
  return to_hex(digest.of(secret, credential));
}

void random_bytes(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const auto part = out.first(std::min<std::size_t>(out.size(), INT_MAX));
    IDEM_ASSERT(RAND_bytes(part.data(), static_cast<int>(part.size())) == 1);
    out = out.subspan(part.size());
  }
}

namespace {

// Counts this process's forks: a child must not use the bytes that its parent drew, because two
// attempts with one token would each regard the other's reservation as their own.
std::atomic<unsigned> forks{0};

void notice_forks() {
  static const int code =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  IDEM_ASSERT(code == 0);
}

// A draw costs far more than its bytes, so one draw serves many tokens.
struct TokenBlock {
  std::array<std::uint8_t, 64 * sizeof(Token)> bytes;
  std::size_t used = sizeof bytes;
  unsigned drawn_after = 0;
};

}  // namespace

Token random_token() {
  notice_forks();
  thread_local TokenBlock block;
  const unsigned now = forks.load(std::memory_order_relaxed);
  if (block.used == block.bytes.size() || block.drawn_after != now) {
    random_bytes(block.bytes);
    block.used = 0;
    block.drawn_after = now;
  }
  Token token;
  std::copy_n(block.bytes.begin() + block.used, token.bytes.size(), token.bytes.begin());
  block.used += token.bytes.size();
  return token;
}

}  // namespace idem::inline v0_1

namespace idem {

BodyForm counted_form(const FingerprintParts& parts) {
  const FingerprintRule rule = parts.rule ? sorted(*parts.rule) : FingerprintRule{};
  return form_by(rule, parts, media_type(parts.content_type), counted_codings(parts));
}

std::string counted_codings(const FingerprintParts& parts) {
  return codings_of(parts.content_encoding);
}

}  // namespace idem
