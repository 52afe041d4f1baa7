#include "check/draft_spec.hpp"

#include "check/profile.hpp"
#include "check/wire/connection.hpp"
#include "config/yaml.hpp"
#include "core/bytes/ascii.hpp"
#include "core/bytes/json_string.hpp"
#include "core/json/scalars.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace idem::check {
namespace {

using config::Node;

// A large provider's document has some megabytes, and schemas within schemas.
constexpr config::YamlLimits openapi_max{.bytes = 32UL << 20, .depth = 64};

const Node* find(const Node* node, std::string_view name) {
  if (node == nullptr || node->kind != Node::Kind::map) return nullptr;
  for (std::size_t i = 0; i < node->keys.size(); ++i) {
    if (node->keys[i].text == name) return &node->items[i];
  }
  return nullptr;
}

std::string text_of(const Node* node) {
  return node != nullptr && node->kind == Node::Kind::scalar ? node->text : std::string();
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F;
}

/// Follows "#/components/..." within the document.
const Node* resolved(const Node& document, const Node* node, int depth = 0) {
  const Node* const reference = find(node, "$ref");
  if (reference == nullptr || depth > 8) return node;
  const std::string& path = reference->text;
  if (!path.starts_with("#/")) return node;
  const Node* found = &document;
  for (std::size_t at = 2; at <= path.size();) {
    const auto end = std::min(path.find('/', at), path.size());
    found = find(found, path.substr(at, end - at));
    at = end + 1;
  }
  return resolved(document, found, depth + 1);
}

/// Makes the body of a request from its schema. The first number becomes {{amount}}, the first text
/// without a format or a choice {{unique}}.
class Example {
 public:
  explicit Example(const Node& document) : document_(document) {}

  std::string of(const Node* schema, const std::string& name = {}, int depth = 0) {
    schema = resolved(document_, schema);
    if (schema == nullptr || depth > 6) return "{}";
    if (const Node* const all = find(schema, "allOf")) return of_parts(*all, depth);
    for (const char* const choice : {"oneOf", "anyOf"}) {
      const Node* const one = find(schema, choice);
      if (one != nullptr && !one->items.empty()) return of(&one->items[0], name, depth + 1);
    }
    const std::string type = text_of(find(schema, "type"));
    if (const Node* const choices = find(schema, "enum"); choices && !choices->items.empty()) {
      return literal(choices->items[0]);
    }
    if (type == "object" || find(schema, "properties") != nullptr) return of_object(schema, depth);
    if (type == "array") return "[" + of(find(schema, "items"), name, depth + 1) + "]";
    if (type == "integer" || type == "number") return number(schema, name);
    if (type == "boolean") return "true";
    return text(schema);
  }

 private:
  static std::string literal(const Node& node) {
    const bool is_text = node.type == Node::Type::text;
    return is_text ? json_string(node.text) : node.text;
  }

  std::string of_parts(const Node& all, int depth) {
    std::string body;
    for (const Node& part : all.items) {
      std::string one = of(&part, {}, depth + 1);
      if (!one.starts_with('{') || one == "{}") continue;
      body += (body.empty() ? "" : ", ") + one.substr(1, one.size() - 2);
    }
    return '{' + body + '}';
  }

  std::string of_object(const Node* schema, int depth) {
    std::set<std::string> required;
    if (const Node* const names = find(schema, "required")) {
      for (const Node& name : names->items) required.insert(name.text);
    }
    const Node* const properties = find(schema, "properties");
    std::string body;
    for (std::size_t i = 0; properties != nullptr && i < properties->keys.size(); ++i) {
      const std::string& name = properties->keys[i].text;
      if (!required.empty() && !required.contains(name)) continue;
      body += body.empty() ? "" : ", ";
      body += json_string(name) + ": " + of(&properties->items[i], name, depth + 1);
    }
    return '{' + body + '}';
  }

  std::string number(const Node* schema, const std::string& name) {
    const std::string small = lower_case(name);
    const bool is_amount = small.contains("amount") || small.contains("price") ||
                           small.contains("total") || small.contains("quantity");
    if (!has_amount_ && (is_amount || name.empty())) {
      has_amount_ = true;
      return "{{amount}}";
    }
    const std::string example = text_of(find(schema, "example"));
    return example.empty() ? "1" : example;
  }

  std::string text(const Node* schema) {
    const std::string format = text_of(find(schema, "format"));
    const std::string example = text_of(find(schema, "example"));
    if (format.empty() && find(schema, "pattern") == nullptr && !has_unique_ &&
        (example.empty() || example.size() > 3)) {
      has_unique_ = true;
      return "\"{{unique}}\"";
    }
    if (!example.empty()) return json_string(example);
    if (format == "date") return "\"2030-01-31\"";
    if (format == "date-time") return "\"2030-01-31T12:00:00Z\"";
    if (format == "email") return "\"check@example.org\"";
    if (format == "uuid") return "\"1de3c4ec-0000-4000-8000-000000000000\"";
    if (format == "uri") return "\"https://example.org/\"";
    return "\"text\"";
  }

  const Node& document_;
  bool has_amount_ = false;
  bool has_unique_ = false;
};

struct Operation {
  std::string path;
  std::string method;
  const Node* node = nullptr;
  std::string key_header;
};

/// The key's field among the parameters of an operation or its path; empty: none.
std::string key_header_of(const Node& document, const Node* parameters) {
  if (parameters == nullptr) return {};
  for (const Node& one : parameters->items) {
    const Node* const parameter = resolved(document, &one);
    const std::string name = text_of(find(parameter, "name"));
    const bool is_header = text_of(find(parameter, "in")) == "header";
    if (is_header && lower_case(name).contains("idempot")) return name;
  }
  return {};
}

const Node* json_schema_of(const Node& document, const Node* message) {
  const Node* const content = find(resolved(document, message), "content");
  if (content == nullptr) return nullptr;
  for (std::size_t i = 0; i < content->keys.size(); ++i) {
    if (content->keys[i].text.contains("json")) return find(&content->items[i], "schema");
  }
  return nullptr;
}

std::vector<Operation> operations_of(const Node& document) {
  std::vector<Operation> all;
  const Node* const paths = find(&document, "paths");
  for (std::size_t i = 0; paths != nullptr && i < paths->keys.size(); ++i) {
    for (const char* const method : {"post", "put", "patch"}) {
      const Node* const node = find(&paths->items[i], method);
      if (node == nullptr) continue;
      std::string key = key_header_of(document, find(node, "parameters"));
      if (key.empty()) key = key_header_of(document, find(&paths->items[i], "parameters"));
      all.push_back({paths->keys[i].text, upper_case(method), node, key});
    }
  }
  return all;
}

/// The pointer to an id in the answer of an operation; empty: none is declared.
std::string resource_of(const Node& document, const Node* operation) {
  const Node* const responses = find(operation, "responses");
  for (std::size_t i = 0; responses != nullptr && i < responses->keys.size(); ++i) {
    if (!responses->keys[i].text.starts_with('2')) continue;
    const Node* const schema = resolved(document, json_schema_of(document, &responses->items[i]));
    const Node* const properties = find(schema, "properties");
    for (std::size_t k = 0; properties != nullptr && k < properties->keys.size(); ++k) {
      const std::string name = properties->keys[k].text;
      if (name == "id" || lower_case(name).ends_with("_id") || name.ends_with("Id"))
        return '/' + name;
    }
  }
  return {};
}

void read_credentials(const Node& document, DraftSpec& draft) {
  auto& names = draft.credential_headers;
  const Node* const schemes = find(find(&document, "components"), "securitySchemes");
  for (std::size_t i = 0; schemes != nullptr && i < schemes->items.size(); ++i) {
    const Node& scheme = schemes->items[i];
    const std::string type = text_of(find(&scheme, "type"));
    if (type == "http" || type == "oauth2" || type == "openIdConnect") {
      names.emplace_back("Authorization");
      if (lower_case(text_of(find(&scheme, "scheme"))) == "basic") draft.authorization = "Basic";
    }
    if (type == "apiKey" && text_of(find(&scheme, "in")) == "header") {
      names.push_back(text_of(find(&scheme, "name")));
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

bool is_authorization(const std::string& header) { return lower_case(header) == "authorization"; }

std::string variable_for(const std::string& header) {
  if (is_authorization(header)) return "API_TOKEN";
  std::string name = "CHECK_";
  for (const char c : header) {
    name += std::isalnum(static_cast<unsigned char>(c)) ? upper_letter(c) : '_';
  }
  return name;
}

/// A credential's value in the file.
std::string value_for(const DraftSpec& draft, const std::string& header) {
  const std::string variable = "${" + variable_for(header) + "}";
  return is_authorization(header) ? draft.authorization + " " + variable : variable;
}

// ---- What an answer to a question must be; the text says what is wrong, and is empty if nothing
// is.

std::string no_profile(const std::string& text) {
  return profile_of(text) ? "" : "It must be " + profile_names() + ".";
}

std::string no_method(const std::string& text) {
  const bool is_method =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
  return is_method ? "" : "It must be a method in capitals, such as POST.";
}

/// The first {parameter} of a path that is not one of our own; empty: none.
std::string parameter_of(std::string path) {
  for (const char* const own : {"{{unique}}", "{{amount}}"}) {
    const std::string_view text(own);
    for (auto at = path.find(text); at != std::string::npos; at = path.find(text)) {
      path.erase(at, text.size());
    }
  }
  const auto from = path.find('{');
  if (from == std::string::npos) return {};
  return path.substr(from, path.find('}', from) - from + 1);
}

std::string no_path(const std::string& text) {
  if (!text.starts_with('/')) return "It must begin with /.";
  if (text.find_first_of(" \r\n") != std::string::npos) return "It must not contain a space.";
  const std::string parameter = parameter_of(text);
  return parameter.empty() ? "" : "Write a value in place of " + parameter + ".";
}

std::string no_body(const std::string& text) {
  return text.contains("{{unique}}") ? "" : "It must contain {{unique}}.";
}

std::string no_field(const std::string& text) {
  const bool is_field = text.find_first_of(" :\t\r\n") == std::string::npos;
  return is_field ? "" : "It must be the name of a header field.";
}

std::string no_key_field(const std::string& text) {
  return text.empty() ? "It must not be empty." : no_field(text);
}

std::string no_pointer(const std::string& text) {
  if (text.empty() || JsonPointer::parse(text)) return {};
  return "It must be a JSON pointer, such as /id.";
}

std::string no_url(const std::string& text) {
  if (text.empty() || Origin::parse(text)) return {};
  return "It must be a URL with http or https.";
}

/// The document may be from elsewhere. What it names goes into a file that names commands and
/// variables.
std::expected<void, std::string> refuse_strange_texts(const DraftSpec& draft) {
  std::vector<std::string> all{draft.path, draft.body, draft.resource, draft.key_header};
  all.insert(all.end(), draft.credential_headers.begin(), draft.credential_headers.end());
  for (const std::string& text : all) {
    if (std::ranges::any_of(text, is_control)) {
      return std::unexpected(
          "a name of the document has a line break or another control character");
    }
    if (text.contains("${")) {
      return std::unexpected("the document has ${, which the file would replace by a variable");
    }
  }
  return {};
}

}  // namespace

bool ask_for_spec(
    DraftSpec& draft,
    const std::function<std::optional<std::string>(const std::string&, const std::string&)>& ask) {
  const auto fill = [&](std::string& into, const std::string& question,
                        std::string (*complaint_of)(const std::string&)) {
    for (std::string complaint;;) {
      const auto answer = ask(complaint.empty() ? question : complaint + '\n' + question, into);
      if (!answer) return false;
      const std::string value = answer->empty() ? into : *answer;
      complaint = complaint_of(value);
      if (!complaint.empty()) continue;
      into = value;
      return true;
    }
  };
  std::string credential = draft.credential_headers.empty() ? "" : draft.credential_headers[0];
  if (!fill(draft.profile, "Profile: ietf, stripe, acp, ucp or custom?", &no_profile) ||
      !fill(draft.method, "Method of a request that creates something?", &no_method) ||
      !fill(draft.path, "Path of the request?", &no_path) ||
      !fill(draft.body,
            "Body of the request, JSON or a form? Write {{amount}} for a number and {{unique}} for "
            "a text that differ from request to request.",
            &no_body) ||
      !fill(draft.key_header, "Header field of the key?", &no_key_field) ||
      !fill(draft.resource,
            "JSON pointer to the created id in the answer, such as /id? Empty: none.",
            &no_pointer) ||
      !fill(draft.effects_url, "URL that answers the total number of executions? Empty: none.",
            &no_url)) {
    return false;
  }
  if (!draft.effects_url.empty() &&
      !fill(draft.effects_pointer,
            "JSON pointer to the number, such as /count? Empty: the answer is the number.",
            &no_pointer)) {
    return false;
  }
  if (!fill(draft.tenant_header, "Header field of the tenant? Empty: none.", &no_field) ||
      !fill(credential, "Header field of the credential, such as Authorization? Empty: none.",
            &no_field)) {
    return false;
  }
  if (credential.empty()) draft.credential_headers.clear();
  if (!credential.empty()) draft.credential_headers = {credential};
  return true;
}

std::expected<DraftSpec, std::string> spec_of_openapi(std::string_view document,
                                                      const std::string& path) {
  config::Complaints complaints;
  const auto root = config::read_yaml(document, "the document", complaints, openapi_max);
  if (!root || !complaints.empty()) {
    const auto lines = complaints.lines();
    return std::unexpected(lines.empty() ? "the document cannot be read" : lines.front());
  }
  if (find(&*root, "swagger") != nullptr) {
    return std::unexpected("the document is Swagger 2.0; convert it to OpenAPI 3");
  }
  auto operations = operations_of(*root);
  if (!path.empty()) {
    std::erase_if(operations, [&](const Operation& one) { return one.path != path; });
  }
  if (operations.empty()) {
    return std::unexpected(path.empty() ? "the document has no POST, PUT or PATCH"
                                        : "the document has no POST, PUT or PATCH of " + path);
  }
  const auto body_of = [&](const Operation& one) {
    return json_schema_of(*root, find(one.node, "requestBody"));
  };
  const auto rank = [&](const Operation& one) {
    const bool is_usable = parameter_of(one.path).empty() && body_of(one) != nullptr;
    return (is_usable ? 2 : 0) + (one.key_header.empty() ? 0 : 1);
  };
  const Operation& chosen = *std::ranges::max_element(operations, {}, rank);
  const std::string name = chosen.method + " " + chosen.path;
  if (const std::string parameter = parameter_of(chosen.path); !parameter.empty()) {
    return std::unexpected(name + " has the parameter " + parameter +
                           ": choose another operation with --path, or run init without --openapi "
                           "and write a value in place of it");
  }
  const Node* const schema = body_of(chosen);
  if (schema == nullptr) {
    return std::unexpected(name +
                           " has no JSON body in the document: choose another operation with "
                           "--path, or run init without --openapi");
  }
  DraftSpec draft;
  draft.method = chosen.method;
  draft.path = chosen.path;
  if (!chosen.key_header.empty()) draft.key_header = chosen.key_header;
  draft.body = Example(*root).of(schema);
  draft.resource = resource_of(*root, chosen.node);
  read_credentials(*root, draft);
  if (auto harmless = refuse_strange_texts(draft); !harmless) {
    return std::unexpected(harmless.error());
  }
  return draft;
}

std::vector<std::string> variables_of(const DraftSpec& draft) {
  std::vector<std::string> all;
  for (const std::string& header : draft.credential_headers) all.push_back(variable_for(header));
  return all;
}

std::string written(const DraftSpec& draft) {
  // Every value: none may end its line, or be more than a text.
  const auto quoted = [](const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? "''" : is_control(c) ? " " : std::string(1, c);
    return out + "'";
  };
  std::string text = "# The request that `idem check` sends, and what it knows of the API.\n";
  text += "profile: " + quoted(draft.profile) + "\n";
  text += "request:\n  method: " + quoted(draft.method) + "\n  path: " + quoted(draft.path) + "\n";
  std::string headers;
  const bool is_form = draft.body.contains('=') && draft.body.find_first_of("{[") != 0;
  if (is_form) headers += "    Content-Type: application/x-www-form-urlencoded\n";
  if (!draft.tenant_header.empty()) headers += "    " + quoted(draft.tenant_header) + ": check\n";
  for (const std::string& name : draft.credential_headers) {
    headers += "    " + quoted(name) + ": " + quoted(value_for(draft, name)) +
               "  # from the environment\n";
  }
  if (!headers.empty()) text += "  headers:\n" + headers;
  if (!draft.body.empty()) {
    text +=
        "  # {{amount}} is a number and {{unique}} a text that differ from request to request.\n";
    text += "  body: " + quoted(draft.body) + "\n";
  }
  text += "key: { header: " + quoted(draft.key_header) + " }\n";
  const auto line = [&](bool is_known, const std::string& setting, const std::string& why) {
    text += "# " + why + "\n" + (is_known ? "" : "# ") + setting + "\n";
  };
  line(!draft.resource.empty(),
       "resource: " + quoted(draft.resource.empty() ? "/id" : draft.resource),
       "The created id in the answer.");
  const std::string pointer = draft.effects_pointer.empty()
                                  ? std::string()
                                  : "  pointer: " + quoted(draft.effects_pointer) + "\n";
  line(!draft.effects_url.empty(),
       draft.effects_url.empty()
           ? "effects: { url: http://127.0.0.1:9000/ledger, pointer: /count }"
           : "effects:\n  url: " + quoted(draft.effects_url) + "\n" + pointer +
                 "  # headers: { Authorization: \"Bearer ${API_TOKEN}\" }",
       "The total number of executions: the most reliable evidence.");
  line(!draft.tenant_header.empty(),
       "tenant: { header: " +
           quoted(draft.tenant_header.empty() ? "X-Tenant-Id" : draft.tenant_header) +
           ", other: check-2 }",
       "Another tenant, which may use the same keys.");
  line(false, "slow: { headers: { X-Delay-Ms: \"1500\" } }",
       "Makes the operation slow, by at least a second (also body or query).");
  line(false, "fails: { headers: { X-Fail: \"503\" } }",
       "Makes the operation fail with a 5xx without an effect.");
  line(false, "refuses: { body: '{}' }", "Makes the API refuse the request with a 4xx.");
  line(false, "restart: \"systemctl restart api\"",
       "Restarts the API, and returns after the old process has ended.");
  line(false, "other: { path: /refunds, method: PUT, query: \"expand=all\" }",
       "Other operations that accept the same body.");
  line(false, "retention: 24h", "How long the API promises replays; tested up to two minutes.");
  return text;
}

}  // namespace idem::check
