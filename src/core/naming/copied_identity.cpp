#include "core/naming/copied_identity.hpp"

namespace idem {
namespace {

using Opening = CopiedIdentity::Opening;

constexpr std::string_view unfinished_mark = "unfinished copy:";
constexpr std::string_view closed_mark = "copied to ";

bool is_unfinished(const RecordedIdentity& recorded) {
  return recorded.key_scope.starts_with(unfinished_mark);
}

/// "copied to ID:operation": the id.
std::optional<std::string> closed_for(const std::string& key_scope) {
  if (!key_scope.starts_with(closed_mark)) return std::nullopt;
  const auto end = key_scope.find(':');
  if (end == key_scope.npos) return std::nullopt;
  return key_scope.substr(closed_mark.size(), end - closed_mark.size());
}

std::string without_mark(const std::string& key_scope) {
  return key_scope.substr(key_scope.find(':') + 1);
}

std::optional<std::string> read_source(const RecordedIdentity& recorded, CopiedIdentity& copied) {
  if (is_unfinished(recorded)) {
    return "it is itself an unfinished copy: copy the store that it is a copy of";
  }
  copied.recorded = recorded;
  copied.closed_for = closed_for(recorded.key_scope).value_or(std::string());
  if (copied.closed_for.empty()) return std::nullopt;
  copied.recorded.key_scope = without_mark(recorded.key_scope);
  --copied.recorded.generation;
  return std::nullopt;
}

// In the next generation no process names records, so that running ones are refused, too.
void close_source(RecordedIdentity& recorded, const CopiedIdentity& copied) {
  const auto before = closed_for(recorded.key_scope);
  const std::string scope = before ? without_mark(recorded.key_scope) : recorded.key_scope;
  recorded.key_scope = std::string(closed_mark) + copied.target_id + ':' + scope;
  if (!before) ++recorded.generation;
}

std::optional<std::string> begin_target(std::optional<RecordedIdentity>& recorded,
                                        const CopiedIdentity& copied) {
  if (recorded && !is_unfinished(*recorded)) {
    return "it is a store of its own, or a finished copy, and stays as it is: name one that does "
           "not exist yet";
  }
  if (recorded && recorded->own != copied.recorded.own) {
    return "it is the unfinished copy of another store: name one that does not exist yet, or empty "
           "this one as a whole";
  }
  recorded = copied.recorded;
  recorded->key_scope.insert(0, unfinished_mark);
  return std::nullopt;
}

std::optional<std::string> end_target(std::optional<RecordedIdentity>& recorded,
                                      const CopiedIdentity& copied) {
  const bool is_ours = recorded && is_unfinished(*recorded) && recorded->own == copied.recorded.own;
  if (!is_ours) return "it is not the unfinished copy any more";
  recorded = copied.recorded;
  return std::nullopt;
}

}  // namespace

std::expected<Identity, std::string> settle_copied(std::optional<RecordedIdentity>& recorded,
                                                   CopiedIdentity& copied) {
  std::optional<std::string> why;
  const bool is_source = copied.opening == Opening::read || copied.opening == Opening::close;
  if (is_source && !recorded) {
    why = "no gateway or service has started on it yet, so there is nothing to copy";
  } else if (copied.opening == Opening::read) {
    why = read_source(*recorded, copied);
  } else if (copied.opening == Opening::close) {
    close_source(*recorded, copied);
  } else if (copied.opening == Opening::begin) {
    why = begin_target(recorded, copied);
  } else {
    why = end_target(recorded, copied);
  }
  if (why) return std::unexpected(std::move(*why));
  return Identity{.generation = recorded->generation,
                  .secret = recorded->own,
                  .older = {},
                  .scope_secret = recorded->own};
}

bool settle_naming(const WhichStore& which, Naming& naming) {
  if (!which.copied) return false;
  CopiedIdentity& copied = *which.copied;
  if (copied.opening == Opening::read || copied.opening == Opening::close) {
    copied.naming = naming;
    return false;
  }
  const bool is_same =
      naming.routes == copied.naming.routes && naming.key_fields == copied.naming.key_fields;
  naming.routes = copied.naming.routes;
  naming.key_fields = copied.naming.key_fields;
  return !is_same;
}

std::optional<std::string> why_marked(const std::string& key_scope) {
  if (key_scope.starts_with(unfinished_mark)) {
    return "it is an unfinished copy of another store, and does not have all of its records: run "
           "idem store copy to its end";
  }
  if (const auto copy = closed_for(key_scope)) {
    return "its records were copied to the store " + *copy +
           ", which takes its place: retries of the keys that came there since would run again "
           "here; write the URL of that store";
  }
  return std::nullopt;
}

}  // namespace idem
