#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::check {

/// What `idem check init` writes down: the answers to its questions, as texts; empty: not said.
struct DraftSpec {
  std::string profile = "ietf";
  std::string method = "POST";
  std::string path;
  std::string body;
  std::vector<std::string>
      credential_headers{};              ///< Names; their values come from the environment.
  std::string authorization = "Bearer";  ///< The scheme of Authorization.
  std::string resource;
  std::string effects_url;
  std::string effects_pointer;
  std::string tenant_header;
  std::string key_header = "Idempotency-Key";
};

/// Asks for all of it. `ask` prints a question with its default and returns the answer, or none at
/// the end of the input. What the file could not have is refused, and asked for again. False: the
/// input ended.
bool ask_for_spec(DraftSpec& draft,
                  const std::function<std::optional<std::string>(
                      const std::string& question, const std::string& otherwise)>& ask);

/// An operation of an OpenAPI 3 document (YAML or JSON) that declares the key's field, or the first
/// that has a JSON body: path, method, an example of its body in which one text and one number
/// differ from request to request, where its answer has an id, and its credentials. `path` chooses
/// an operation; empty: any. The error is a sentence.
std::expected<DraftSpec, std::string> spec_of_openapi(std::string_view document,
                                                      const std::string& path);

/// The variables of the environment that the file needs.
std::vector<std::string> variables_of(const DraftSpec& draft);

/// The file, commented, which read_spec() accepts.
std::string written(const DraftSpec& draft);

}  // namespace idem::check
