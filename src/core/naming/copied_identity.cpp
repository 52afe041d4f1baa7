#include "core/naming/copied_identity.hpp"

namespace idem {
namespace {

using Opening = CopiedIdentity::Opening;

constexpr std::string_view unfinished_mark = "unfinished copy:";
constexpr std::string_view closed_mark = "copied to ";
constexpr std::string_view moved_mark = "moved to ";

bool is_unfinished(const RecordedIdentity& recorded) {
  return recorded.key_scope.starts_with(unfinished_mark);
}

/// "copied to ID:operation": the id.
std::optional<std::string> closed_for(const std::string& key_scope) {
  for (const std::string_view mark : {closed_mark, moved_mark}) {
    const auto end = key_scope.find(':');
    if (!key_scope.starts_with(mark) || end == key_scope.npos) continue;
    return key_scope.substr(mark.size(), end - mark.size());
  }
  return std::nullopt;
}

std::string without_mark(const std::string& key_scope) {
  return key_scope.substr(key_scope.find(':') + 1);
}

using Problem = std::optional<std::string>;

Problem read_source(const RecordedIdentity& recorded, CopiedIdentity& copied) {
  if (is_unfinished(recorded)) {
    return "it is itself an unfinished copy: copy the store that it is a copy of";
  }
  copied.recorded = recorded;
  copied.closed_for = closed_for(recorded.key_scope).value_or(std::string());
  copied.is_moved = recorded.key_scope.starts_with(moved_mark);
  if (copied.closed_for.empty()) return std::nullopt;
  copied.recorded.key_scope = without_mark(recorded.key_scope);
  --copied.recorded.generation;
  return std::nullopt;
}

// What is recorded may have changed since it was read. In the next generation no process names
// records, so that running ones are refused, too.
Problem close_source(RecordedIdentity& recorded, CopiedIdentity& copied) {
  if (auto why = read_source(recorded, copied)) return why;
  const std::string& former = copied.closed_for;
  const bool is_lost = former == copied.lost_copy && !copied.is_moved;
  if (!former.empty() && former != copied.target_id && !is_lost) {
    return "it was closed for its copy " + former + ", which takes its place: copy that one";
  }
  copied.closed_generation = copied.recorded.generation + 1;
  if (copied.is_moved) return std::nullopt;
  recorded.key_scope =
      std::string(closed_mark) + copied.target_id + ':' + copied.recorded.key_scope;
  recorded.generation = copied.recorded.generation + 1;
  return std::nullopt;
}

/// The last moment at which another run may close it for another copy.
Problem move_source(RecordedIdentity& recorded, CopiedIdentity& copied) {
  if (auto why = read_source(recorded, copied)) return why;
  const bool is_same = copied.closed_for == copied.target_id &&
                       copied.recorded.generation + 1 == copied.closed_generation;
  if (!is_same) return "it was closed for another copy meanwhile, or opened again";
  recorded.key_scope = std::string(moved_mark) + copied.target_id + ':' + copied.recorded.key_scope;
  return std::nullopt;
}

Problem reopen_source(RecordedIdentity& recorded, CopiedIdentity& copied) {
  if (auto why = read_source(recorded, copied)) return why;
  if (copied.closed_for.empty()) return std::nullopt;
  if (copied.is_moved) return "its copy " + copied.closed_for + " has taken its place";
  if (copied.closed_for != copied.target_id) {
    return "it was closed for the copy " + copied.closed_for + ", which is not this one";
  }
  recorded.key_scope = copied.recorded.key_scope;
  ++recorded.generation;
  return std::nullopt;
}

Problem begin_target(std::optional<RecordedIdentity>& recorded, const CopiedIdentity& copied) {
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
  recorded->generation = copied.run;
  return std::nullopt;
}

Problem end_target(std::optional<RecordedIdentity>& recorded, const CopiedIdentity& copied) {
  const bool is_ours = recorded && is_unfinished(*recorded) && recorded->generation == copied.run;
  if (!is_ours) return "another idem store copy works on it, or its server has lost writes";
  recorded = copied.recorded;
  return std::nullopt;
}

Problem settle(std::optional<RecordedIdentity>& recorded, CopiedIdentity& copied) {
  const bool is_source = copied.opening == Opening::read || copied.opening == Opening::close ||
                         copied.opening == Opening::move || copied.opening == Opening::reopen;
  if (is_source && !recorded) {
    return "no gateway or service has started on it yet, so there is nothing to copy";
  }
  switch (copied.opening) {
    case Opening::read:
      return read_source(*recorded, copied);
    case Opening::close:
      return close_source(*recorded, copied);
    case Opening::move:
      return move_source(*recorded, copied);
    case Opening::reopen:
      return reopen_source(*recorded, copied);
    case Opening::look:
      copied.is_missing = !recorded;
      if (copied.is_missing) return "nobody has begun a store there";
      copied.is_finished = !is_unfinished(*recorded);
      return std::nullopt;
    case Opening::begin:
      return begin_target(recorded, copied);
    case Opening::end:
      return end_target(recorded, copied);
  }
  return std::nullopt;
}

}  // namespace

std::expected<Identity, std::string> settle_copied(std::optional<RecordedIdentity>& recorded,
                                                   CopiedIdentity& copied) {
  if (auto why = settle(recorded, copied)) return std::unexpected(std::move(*why));
  return Identity{.generation = recorded->generation,
                  .secret = recorded->own,
                  .older = {},
                  .scope_secret = recorded->own};
}

bool settle_naming(const WhichStore& which, Naming& naming) {
  if (!which.copied) return false;
  CopiedIdentity& copied = *which.copied;
  if (copied.opening == Opening::look) return false;
  if (copied.opening != Opening::begin && copied.opening != Opening::end) {
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
  const auto copy = closed_for(key_scope);
  if (copy && copy->starts_with(undone_copies)) {
    return "idem store copy --undo was cut off here: run it again";
  }
  if (copy) {
    return "its records were copied to the store " + *copy +
           ", which takes its place: retries of the keys that came there since would run again "
           "here; write the URL of that store";
  }
  return std::nullopt;
}

}  // namespace idem
