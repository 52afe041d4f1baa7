#include "gateway/keyed/explained_fingerprint.hpp"

#include "core/fingerprint/body_form.hpp"
#include "core/fingerprint/media_type.hpp"
#include "core/json/differences.hpp"
#include "core/json/selection.hpp"
#include "core/record/stored_request.hpp"
#include "core/transitions/transitions.hpp"
#include "gateway/forward.hpp"
#include "gateway/keyed/async_request.hpp"
#include "gateway/keyed/reserve.hpp"
#include "http/head_fields.hpp"

#include <idem/json.hpp>

#include <algorithm>
#include <array>

namespace idem::gateway {
namespace {

using Difference = Explanation::Difference;

// A screen of them.
constexpr std::size_t differences_max = 50;
// Each trial digests the body: together they read as much as one body of the listener's limit.
constexpr std::size_t trial_body_bytes_max = 64UL * 1024;
constexpr std::size_t trial_members_max = 32;

bool names(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::any_of(list, [&](const auto& one) { return http::same_name(one, name); });
}

std::string in_bytes(std::size_t bytes) { return std::to_string(bytes) + " bytes"; }

/// The canonical form of a body that counts as JSON; none: it counts otherwise.
std::optional<std::string> json_of(const FingerprintParts& parts) {
  if (!counted_form(parts).tag.starts_with("json")) return std::nullopt;
  auto form = fingerprint_form(parts.body);
  if (!form) return std::nullopt;
  return std::move(*form);
}

void add_body(Explanation::Fingerprint& facts, const FingerprintParts& parts) {
  const FingerprintRule& rule = *parts.rule;
  facts.form = counted_form(parts).tag;
  if (const std::string codings = counted_codings(parts); !codings.empty()) {
    facts.counted.push_back("Content-Encoding");
  }
  if (parts.as_sent != nullptr) facts.left_out.push_back("Content-Encoding: the body was decoded");
  if (facts.form == "json selection") {
    const auto selection = JsonSelection::parse(rule.include, rule.exclude);
    const auto form = json_of(parts);
    std::vector<std::string> found;
    if (selection && form) found = selection->found_in(*form);
    for (const auto& pointer : rule.exclude) facts.left_out.push_back("body " + pointer);
    if (found.empty()) {
      facts.counted.push_back("body");
    } else {  // An absent value counts as absent.
      for (const auto& pointer : rule.include) facts.counted.push_back("body " + pointer);
      facts.left_out.push_back("the rest of the body");
    }
  } else {
    facts.counted.push_back("body");
  }
  if (facts.form.starts_with("json")) {
    facts.left_out.push_back("order of members, white space and spelling in the body");
  } else if (facts.form == "form") {
    facts.left_out.push_back("order of fields with different names in the body");
  } else if (facts.form == "multipart") {
    facts.left_out.push_back("boundary of the body");
  }
}

/// The members that count, as far as a rule chooses some of them.
class Chosen {
 public:
  Chosen(const FingerprintRule& rule, std::string_view before, std::string_view after)
      : rule_(rule) {
    const auto selection = JsonSelection::parse(rule.include, rule.exclude);
    by_include_ =
        selection && !(selection->found_in(before).empty() && selection->found_in(after).empty());
  }

  bool operator()(const std::string& pointer) const {
    const auto is_in = [&](const std::string& outer) { return lies_in(pointer, outer); };
    if (std::ranges::any_of(rule_.exclude, is_in)) return false;
    if (!by_include_) return true;
    return std::ranges::any_of(rule_.include, [&](const std::string& one) {
      return lies_in(pointer, one) || lies_in(one, pointer);
    });
  }

 private:
  static bool lies_in(std::string_view inner, std::string_view outer) {
    return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '/');
  }

  const FingerprintRule& rule_;
  bool by_include_ = false;
};

/// A stored request beside a new one.
class Comparison {
 public:
  Comparison(const FingerprintParts& sent, const StoredRequest& stored, const Route& route,
             const GatewaySettings& settings, std::size_t decoded_max)
      : sent_(sent), route_(route), settings_(settings) {
    head_.method = stored.method;
    head_.origin_form = stored.target;
    for (const auto& [name, value] : stored.fields) {
      head_.fields.push_back({name, value, http::known_field(name)});
    }
    stored_.emplace(head_, stored.body, route, decoded_max);
  }

  PartsCompared run() {
    const FingerprintParts& stored = stored_->parts();
    add_if_other("method", stored.method, sent_.method);
    if (stored.target != sent_.target) add_target(stored.target);
    add_if_other("media type", media_type(stored.content_type), media_type(sent_.content_type));
    add_if_other("Content-Encoding", counted_codings(stored), counted_codings(sent_));
    for (const auto& name : route_.fingerprint.headers) compare_header(name);
    for (const auto& name : always_sent()) compare_header(name);
    compare_body();
    PartsCompared compared{std::move(found_), "The stored request was compared with this one."};
    if (!unread_.empty()) {
      compared.why += " Not compared, because it is stored sealed or not at all: " + unread_ + ".";
    }
    return compared;
  }

 private:
  void add_if_other(std::string part, std::string_view stored, std::string_view sent) {
    if (stored == sent) return;
    found_.push_back({std::move(part), stored.empty() ? "absent" : std::string(stored),
                      sent.empty() ? "absent" : std::string(sent)});
  }

  void add_target(std::string_view stored) {
    const bool is_path = http::path_of(stored) != http::path_of(sent_.target);
    found_.push_back({is_path ? "path" : "query", in_bytes(stored.size()) + " with the path",
                      in_bytes(sent_.target.size()) + " with the path"});
  }

  /// The fields of either that count without being named by the rule; each once.
  std::vector<std::string> always_sent() const {
    std::vector<std::string> sent;
    for (const FingerprintParts* parts : {&stored_->parts(), &sent_}) {
      for (std::size_t i = 0; i < parts->chosen_headers.size(); i += 2) {
        const auto name = parts->chosen_headers[i];
        if (!names(route_.fingerprint.headers, name) && !names(sent, name)) sent.emplace_back(name);
      }
    }
    return sent;
  }

  static std::vector<std::string_view> lines(const FingerprintParts& parts, std::string_view name) {
    std::vector<std::string_view> values;
    for (std::size_t i = 0; i < parts.chosen_headers.size(); i += 2) {
      if (http::same_name(parts.chosen_headers[i], name)) {
        values.push_back(parts.chosen_headers[i + 1]);
      }
    }
    return values;
  }

  static std::string masked_lines(const std::vector<std::string_view>& values) {
    if (values.empty()) return "absent";
    std::size_t bytes = 0;
    for (const auto value : values) bytes += value.size();
    return in_bytes(bytes);
  }

  void compare_header(const std::string& name) {
    if (is_key_field(name, settings_) || names(route_.async_keep_fields, name) ||
        is_credential(name, settings_)) {
      unread_ += (unread_.empty() ? "" : ", ") + name;
      return;
    }
    const auto stored = lines(stored_->parts(), name);
    const auto sent = lines(sent_, name);
    if (stored != sent) {
      found_.push_back({"header " + name, masked_lines(stored), masked_lines(sent)});
    }
  }

  void compare_body() {
    const FingerprintParts& stored = stored_->parts();
    const auto before = json_of(stored);
    const auto after = json_of(sent_);
    if (!before || !after) {
      if (stored.body == sent_.body) return;
      found_.push_back({"body", in_bytes(stored.body.size()), in_bytes(sent_.body.size())});
      return;
    }
    const Chosen counts(*sent_.rule, *before, *after);
    for (auto& one : json_differences(*before, *after, differences_max, counts)) {
      found_.push_back(
          {one.pointer.empty() ? "body" : "body " + one.pointer, one.before, one.after});
    }
  }

  const FingerprintParts& sent_;
  const Route& route_;
  const GatewaySettings& settings_;
  http::RequestHead head_;
  std::optional<Fingerprinted> stored_;
  std::vector<Difference> found_;
  std::string unread_;
};

/// Changes one part at a time.
class Trials {
 public:
  Trials(const FingerprintParts& sent, const Record& record, const Identity& identity)
      : sent_(sent), record_(record), identity_(identity) {}

  std::optional<Difference> run() {
    const std::array all{&Trials::methods, &Trials::queries,    &Trials::media_types,
                         &Trials::headers, &Trials::whole_body, &Trials::members};
    for (const auto& trial : all) {
      if ((this->*trial)()) return std::move(found_);
    }
    return std::nullopt;
  }

 private:
  bool fits(const FingerprintParts& changed) const {
    const RequestDigest digest(changed);
    const auto is_under = [&](const Secret& secret) {
      return transitions::any_matches(digest.under(secret), record_.fingerprint);
    };
    return is_under(identity_.secret) || std::ranges::any_of(identity_.older, is_under);
  }

  bool try_it(const FingerprintParts& changed, std::string part, std::string stored,
              std::string sent) {
    if (!fits(changed)) return false;
    found_ = {std::move(part), std::move(stored), std::move(sent)};
    return true;
  }

  bool methods() {
    static constexpr std::array<std::string_view, 4> all{"POST", "PATCH", "PUT", "DELETE"};
    return std::ranges::any_of(all, [&](std::string_view method) {
      FingerprintParts changed = sent_;
      changed.method = method;
      return try_it(changed, "method", std::string(method), std::string(sent_.method));
    });
  }

  bool queries() {
    const auto path = http::path_of(sent_.target);
    if (path.size() == sent_.target.size()) return false;
    FingerprintParts changed = sent_;
    changed.target = path;
    return try_it(changed, "query", "absent", in_bytes(sent_.target.size() - path.size() - 1));
  }

  bool media_types() {
    static constexpr std::array<std::string_view, 6> all{"application/json",
                                                         "",
                                                         "application/x-www-form-urlencoded",
                                                         "text/plain",
                                                         "application/octet-stream",
                                                         "application/xml"};
    return std::ranges::any_of(all, [&](std::string_view type) {
      FingerprintParts changed = sent_;
      changed.content_type = type;
      const auto sent = media_type(sent_.content_type);
      return try_it(changed, "media type", type.empty() ? "absent" : std::string(type),
                    sent.empty() ? "absent" : sent);
    });
  }

  bool headers() {
    if (sent_.chosen_headers.empty()) return false;
    FingerprintParts changed = sent_;
    changed.chosen_headers = {};
    return try_it(changed, "headers that count", "absent",
                  std::to_string(sent_.chosen_headers.size() / 2) + " lines");
  }

  bool whole_body() {
    FingerprintParts changed = sent_;
    changed.body = {};
    return try_it(changed, "body", "absent", in_bytes(sent_.body.size()));
  }

  bool members() {
    if (sent_.body.size() > trial_body_bytes_max) return false;
    const auto form = json_of(sent_);
    if (!form) return false;
    const auto all = without_each_member(*form, trial_members_max);
    return std::ranges::any_of(all, [&](const WithoutMember& one) {
      FingerprintParts changed = sent_;
      changed.body = one.text;
      return try_it(changed, "body " + one.pointer, "absent", masked(one.value));
    });
  }

  const FingerprintParts& sent_;
  const Record& record_;
  const Identity& identity_;
  Difference found_;
};

}  // namespace

Explanation::Fingerprint explained_fingerprint(const RequestInQuestion& request,
                                               const http::RequestHead& head,
                                               const GatewaySettings& settings,
                                               const Route& route) {
  const Fingerprinted fingerprinted(head, request.body, route);
  Explanation::Fingerprint facts;
  facts.counted = {"method", "path and query", "media type"};
  for (const auto& name : route.fingerprint.headers) facts.counted.push_back("header " + name);
  for (const Field& field : request.headers) {
    const bool is_body = http::same_name(field.name, "Content-Type") ||
                         http::same_name(field.name, "Content-Encoding") ||
                         http::same_name(field.name, "Content-Length");
    // These name the record.
    const bool is_name =
        is_key_field(field.name, settings) || (settings.scope.kind != ScopeSource::Kind::fixed &&
                                               http::same_name(field.name, settings.scope.name));
    if (is_body || is_name || names(route.fingerprint.headers, field.name)) continue;
    const std::string shown = "header " + field.name;
    const bool counts = counts_always(field.name) || MethodOverride::is_field(field.name);
    auto& list = counts ? facts.counted : facts.left_out;
    if (std::ranges::find(list, shown) == list.end()) list.push_back(shown);
  }
  add_body(facts, fingerprinted.parts());
  return facts;
}

PartsCompared compared_parts(const http::RequestHead& head, std::string_view body,
                             const Record& record, const Identity& identity,
                             const GatewaySettings& settings, const Route& route,
                             std::size_t decoded_max) {
  const Fingerprinted sent(head, body, route, decoded_max);
  if (sent.is_cut()) return {{}, "The body is not compared, because it holds too much."};
  if (record.stored_request && !record.stored_request->empty()) {
    const auto stored = decode_request(*record.stored_request);
    if (stored) return Comparison(sent.parts(), *stored, route, settings, decoded_max).run();
  }
  const auto operation = route.operation(head.method, http::path_of(head.origin_form));
  if (settings.key_scope == KeyScope::tenant && record.operation != operation) {
    return {{{"operation", record.operation, operation}},
            "A key is unique in its scope here, and this one was used for another operation."};
  }
  if (auto difference = Trials(sent.parts(), record, identity).run()) {
    return {{std::move(*difference)},
            "The record keeps a digest of its request only; with this one part changed, this "
            "request has the same."};
  }
  return {{},
          "The record keeps a digest of its request only, so which part differs is not known: "
          "no change of one part alone that was tried (method, query, media type, headers that "
          "count, no body, one member less) gives the same."};
}

}  // namespace idem::gateway
