#include "check/spec.hpp"

#include "config/yaml.hpp"
#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>

namespace idem::check {
namespace {

using config::Complaints;
using config::Node;
using std::chrono::milliseconds;

// Cases add to it, and a double still has each of their sums.
constexpr std::int64_t amount_max = 1'000'000'000'000;

using Environment = std::function<std::optional<std::string>(const std::string&)>;

// An API that answers later is asked in vain by its clients, too; a run has hundreds of requests.
constexpr milliseconds timeout_max{600'000};

/// RFC 9110, 5.6.2.
bool is_field_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("!#$%&'*+-.^_`|~").contains(static_cast<char>(c));
  });
}

/// Whether a request's first line may have it: its end would begin another one.
bool has_space_or_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c <= 0x20 || c == 0x7F; });
}

bool is_method(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

std::string listed(std::initializer_list<std::string_view> names) {
  std::string text;
  for (const auto name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// Reads nodes; what is wrong becomes a complaint at its place.
class Reader {
 public:
  Reader(const Environment& environment, Complaints& complaints, std::vector<std::string>& secrets)
      : environment_(environment), complaints_(complaints), secrets_(secrets) {}

  void complain(const Node& node, std::string sentence) {
    complaints_.add(node.place, std::move(sentence));
  }

  bool is_map(const Node& node, const std::string& name,
              std::initializer_list<std::string_view> known) {
    if (node.kind != Node::Kind::map) {
      complain(node, name + ": must be a map of " + listed(known));
      return false;
    }
    for (const Node& key : node.keys) {
      if (std::ranges::find(known, key.text) != known.end()) continue;
      complain(key, name + ": there is no `" + key.text + "`; there are " + listed(known));
    }
    return true;
  }

  static const Node* find(const Node& map, std::string_view name) {
    if (map.kind != Node::Kind::map) return nullptr;
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      if (map.keys[i].text == name) return &map.items[i];
    }
    return nullptr;
  }

  std::string text(const Node& node, const std::string& name) {
    if (node.kind != Node::Kind::scalar || node.type == Node::Type::null) {
      complain(node, name + ": must be a text");
      return {};
    }
    return with_variables(node, name);
  }
  std::optional<std::string> optional_text(const Node& map, const std::string& of,
                                           std::string_view name) {
    const Node* const node = find(map, name);
    if (node == nullptr) return std::nullopt;
    return text(*node, of + "." + std::string(name));
  }

  Fields fields(const Node& map, const std::string& of) {
    Fields all;
    const Node* const node = find(map, "headers");
    if (node == nullptr) return all;
    if (node->kind != Node::Kind::map) {
      complain(*node, of + ".headers: must be a map of names and values");
      return all;
    }
    for (std::size_t i = 0; i < node->keys.size(); ++i) {
      all.emplace_back(node->keys[i].text, text(node->items[i], of + ".headers"));
      const auto& [name, value] = all.back();
      if (!is_field_name(name) || value.find_first_of("\r\n") != std::string::npos) {
        complain(node->keys[i], of + ".headers: has a name or a value that HTTP does not allow");
      }
    }
    return all;
  }

  std::optional<JsonPointer> pointer(const Node& node, const std::string& name) {
    auto parsed = JsonPointer::parse(text(node, name));
    if (parsed) return std::move(*parsed);
    complain(node, name + ": " + parsed.error());
    return std::nullopt;
  }

  std::optional<milliseconds> duration(const Node& node, const std::string& name) {
    const auto read = duration_of(text(node, name));
    if (!read) complain(node, name + ": must be a duration: 500ms, 10s, 5m or 24h");
    return read;
  }
  std::optional<milliseconds> duration(const Node& node, const std::string& name,
                                       milliseconds most) {
    const auto read = duration(node, name);
    if (!read || *read <= most) return read;
    complain(node, name + ": must be at most " + std::to_string(most.count() / 60'000) + "m");
    return std::nullopt;
  }

  std::vector<int> statuses(const Node& node, const std::string& name) {
    std::vector<int> all;
    const std::vector<Node> items =
        node.kind == Node::Kind::list ? node.items : std::vector<Node>{node};
    for (const Node& item : items) {
      int status = 0;
      const char* const end = item.text.data() + item.text.size();
      const auto parsed = std::from_chars(item.text.data(), end, status);
      if (item.kind != Node::Kind::scalar || parsed.ec != std::errc{} || parsed.ptr != end ||
          status < 400 || status > 499) {
        complain(item, name + ": must be a status from 400 to 499, or a list of them");
        continue;
      }
      all.push_back(status);
    }
    return all;
  }

  std::optional<bool> truth(const Node& node, const std::string& name) {
    if (node.text == "true") return true;
    if (node.text == "false") return false;
    complain(node, name + ": must be true or false");
    return std::nullopt;
  }

  std::optional<Variation> variation(const Node& spec, std::string_view name) {
    const Node* const node = find(spec, name);
    if (node == nullptr) return std::nullopt;
    const std::string of(name);
    if (!is_map(*node, of, {"headers", "body", "query"})) return std::nullopt;
    return Variation{.body = optional_text(*node, of, "body"),
                     .query = optional_text(*node, of, "query"),
                     .headers = fields(*node, of)};
  }

 private:
  std::string with_variables(const Node& node, const std::string& name) {
    std::string text = node.text;
    for (auto at = text.find("${"); at != std::string::npos; at = text.find("${", at)) {
      const auto end = text.find('}', at);
      if (end == std::string::npos) {
        complain(node, name + ": has a ${ without its }");
        break;
      }
      const std::string variable = text.substr(at + 2, end - at - 2);
      const auto value = environment_(variable);
      if (!value || value->empty()) {
        complain(node, name + ": the variable " + variable + " is not set");
        break;
      }
      secrets_.push_back(*value);
      text.replace(at, end + 1 - at, *value);
      at += value->size();
    }
    return text;
  }

  const Environment& environment_;
  Complaints& complaints_;
  std::vector<std::string>& secrets_;
};

void read_request(Reader& reader, const Node& root, Spec& spec) {
  const Node* const node = Reader::find(root, "request");
  if (node == nullptr) {
    return reader.complain(root,
                           "request: is missing; write the request that idem check sends: "
                           "request: { method: POST, path: /payments, body: '...' }");
  }
  if (!reader.is_map(*node, "request", {"method", "path", "headers", "body"})) return;
  spec.method = reader.optional_text(*node, "request", "method").value_or("POST");
  spec.path = reader.optional_text(*node, "request", "path").value_or("");
  spec.body = reader.optional_text(*node, "request", "body").value_or("");
  spec.headers = reader.fields(*node, "request");
  if (!spec.body.empty()) {
    const bool has_type = std::ranges::any_of(
        spec.headers, [](const auto& field) { return equal_names(field.first, "content-type"); });
    if (!has_type) spec.headers.emplace_back("Content-Type", "application/json");
  }
  if (!is_method(spec.method))
    reader.complain(*node, "request.method: must be a method in capitals, such as POST");
  if (!spec.path.empty() && !spec.path.starts_with('/')) {
    reader.complain(*node, "request.path: must begin with /");
  }
  if (has_space_or_control(spec.path)) {
    reader.complain(*node, "request.path: contains a space or a line break");
  }
  if (!spec.body.empty() && !spec.body.contains("{{unique}}")) {
    reader.complain(*node,
                    "request.body: has no {{unique}}; write it where a text may differ from "
                    "request to request, or two operations look like one that executed twice");
  }
}

void read_effects(Reader& reader, const Node& root, Spec& spec) {
  const Node* const node = Reader::find(root, "effects");
  if (node == nullptr) return;
  if (!reader.is_map(*node, "effects", {"url", "command", "pointer", "headers", "settle"})) return;
  Spec::Effects effects;
  effects.url = reader.optional_text(*node, "effects", "url").value_or("");
  effects.command = reader.optional_text(*node, "effects", "command").value_or("");
  effects.headers = reader.fields(*node, "effects");
  if (const Node* const pointer = Reader::find(*node, "pointer")) {
    effects.pointer = reader.pointer(*pointer, "effects.pointer");
  }
  if (const Node* const settle = Reader::find(*node, "settle")) {
    effects.settle = reader.duration(*settle, "effects.settle", timeout_max);
  }
  if (effects.url.empty() == effects.command.empty()) {
    reader.complain(*node, "effects: needs either a url or a command");
  }
  spec.effects = std::move(effects);
}

void read_key(Reader& reader, const Node& root, Spec& spec) {
  const Node* const node = Reader::find(root, "key");
  if (node == nullptr || !reader.is_map(*node, "key", {"header", "form"})) return;
  spec.key_header = reader.optional_text(*node, "key", "header").value_or(spec.key_header);
  if (!is_field_name(spec.key_header)) {
    reader.complain(*Reader::find(*node, "header"), "key.header: must be the name of a field");
  }
  const auto form = reader.optional_text(*node, "key", "form");
  if (!form) return;
  if (*form == "bare") {
    spec.key_form = KeyForm::bare;
  } else if (*form == "string") {
    spec.key_form = KeyForm::string;
  } else if (*form == "uuid") {
    spec.key_form = KeyForm::uuid;
  } else {
    reader.complain(*Reader::find(*node, "form"), "key.form: must be bare, string or uuid");
  }
}

/// What differs from the profile, or makes up the custom one.
void read_expectations(Reader& reader, const Node& root, Profile& profile) {
  const Node* const node = Reader::find(root, "expect");
  if (node == nullptr) return;
  if (!reader.is_map(*node, "expect",
                     {"misuse", "in_flight", "missing", "key_required", "marker", "errors"})) {
    return;
  }
  const auto statuses = [&](const char* name, std::vector<int>& into) {
    const Node* const one = Reader::find(*node, name);
    if (one != nullptr) into = reader.statuses(*one, std::string("expect.") + name);
  };
  statuses("misuse", profile.misuse);
  statuses("in_flight", profile.in_flight);
  statuses("missing", profile.missing);
  if (const Node* const one = Reader::find(*node, "key_required")) {
    profile.key_required = reader.truth(*one, "expect.key_required").value_or(profile.key_required);
  }
  if (const Node* const one = Reader::find(*node, "marker")) {
    profile.marker = reader.text(*one, "expect.marker");
    if (!profile.marker.empty() && !profile.marker.contains(": ")) {
      reader.complain(*one, "expect.marker: must be a field as `Name: value`");
    }
  }
  if (const Node* const one = Reader::find(*node, "errors")) {
    using Errors = Profile::Errors;
    const std::string errors = reader.text(*one, "expect.errors");
    if (errors == "any") profile.server_errors = Errors::any;
    if (errors == "replayed") profile.server_errors = Errors::replayed;
    if (errors == "run_again") profile.server_errors = Errors::run_again;
    if (errors != "any" && errors != "replayed" && errors != "run_again") {
      reader.complain(*one, "expect.errors: must be any, replayed or run_again");
    }
  }
}

/// A JSON pointer, or the name of a field: Location, or with a hyphen, as those of no member are.
void read_resource(Reader& reader, const Node& root, Spec& spec) {
  const Node* const node = Reader::find(root, "resource");
  if (node == nullptr) return;
  const std::string& name = node->text;
  const bool is_header = is_field_name(name) && (name.contains('-') || name == "Location");
  if (is_header) {
    spec.resource_header = name;
  } else {
    spec.resource = reader.pointer(*node, "resource");
  }
}

void read_other(Reader& reader, const Node& root, Spec& spec) {
  const Node* const node = Reader::find(root, "other");
  if (node == nullptr || !reader.is_map(*node, "other", {"path", "method", "query"})) return;
  spec.other_path = reader.optional_text(*node, "other", "path");
  spec.other_method = reader.optional_text(*node, "other", "method");
  spec.other_query = reader.optional_text(*node, "other", "query");
  if (spec.other_path && !spec.other_path->starts_with('/')) {
    reader.complain(*Reader::find(*node, "path"), "other.path: must begin with /");
  }
  if (spec.other_path && has_space_or_control(*spec.other_path)) {
    reader.complain(*Reader::find(*node, "path"), "other.path: contains a space or a line break");
  }
  if (spec.other_query && has_space_or_control(*spec.other_query)) {
    reader.complain(*Reader::find(*node, "query"), "other.query: contains a space or a line break");
  }
  if (spec.other_method && !is_method(*spec.other_method)) {
    reader.complain(*Reader::find(*node, "method"),
                    "other.method: must be a method in capitals, such as PUT");
  }
}

void read_surroundings(Reader& reader, const Node& root, Spec& spec) {
  read_resource(reader, root, spec);
  if (const Node* const node = Reader::find(root, "tenant");
      node != nullptr && reader.is_map(*node, "tenant", {"header", "other"})) {
    spec.tenant = {reader.optional_text(*node, "tenant", "header").value_or(""),
                   reader.optional_text(*node, "tenant", "other").value_or("")};
    if (spec.tenant->header.empty() || spec.tenant->other.empty()) {
      reader.complain(*node, "tenant: needs header and other");
    }
  }
  read_other(reader, root, spec);
  if (const Node* const node = Reader::find(root, "restart")) {
    spec.restart = reader.text(*node, "restart");
  }
  spec.slow = reader.variation(root, "slow");
  spec.fails = reader.variation(root, "fails");
  spec.refuses = reader.variation(root, "refuses");
  if (const Node* const node = Reader::find(root, "retention")) {
    spec.retention = reader.duration(*node, "retention");
  }
  if (const Node* const node = Reader::find(root, "timeout")) {
    spec.timeout = reader.duration(*node, "timeout", timeout_max).value_or(spec.timeout);
  }
  if (const Node* const node = Reader::find(root, "amount")) {
    const std::string text = reader.text(*node, "amount");
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), spec.amount);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || spec.amount < 1 ||
        spec.amount > amount_max) {
      reader.complain(*node, "amount: must be a whole number from 1 to 1000000000000");
    }
  }
}

}  // namespace

std::optional<milliseconds> duration_of(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  const std::int64_t scale = unit == "ms"  ? 1
                             : unit == "s" ? 1'000
                             : unit == "m" ? 60'000
                             : unit == "h" ? 3'600'000
                                           : 0;
  if (parsed.ec != std::errc{} || scale == 0 || number <= 0 || number > 1'000'000) {
    return std::nullopt;
  }
  return milliseconds(number * scale);
}

Spec read_spec(std::string_view text, const std::string& source, std::string_view profile,
               const Environment& environment, Complaints& complaints) {
  Spec spec;
  const auto root = config::read_yaml(text, source, complaints);
  if (!root) return spec;
  Reader reader(environment, complaints, spec.secrets);
  if (!reader.is_map(*root, "the file",
                     {"request", "resource", "effects", "tenant", "restart", "key", "other", "slow",
                      "fails", "refuses", "retention", "timeout", "amount", "profile", "expect"})) {
    return spec;
  }
  const Node* const named = Reader::find(*root, "profile");
  const std::string name = !profile.empty()   ? std::string(profile)
                           : named != nullptr ? reader.text(*named, "profile")
                                              : "ietf";
  const auto found = profile_of(name);
  if (!found) {
    complaints.add(
        named != nullptr && profile.empty() ? named->place : config::Place{.source = "--profile"},
        "the profile must be " + profile_names());
    return spec;
  }
  spec.profile = *found;
  read_request(reader, *root, spec);
  read_effects(reader, *root, spec);
  read_key(reader, *root, spec);
  read_expectations(reader, *root, spec.profile);
  read_surroundings(reader, *root, spec);
  return spec;
}

}  // namespace idem::check
