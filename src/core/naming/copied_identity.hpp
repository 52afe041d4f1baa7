#pragma once

#include "core/naming/identity_settling.hpp"
#include "core/naming/naming.hpp"

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

/// How `idem store copy` brings what names the records from one store to another. Every kind of
/// store calls settle_identity() and settle_naming() when it is opened, and records what they
/// change. A mark in the recorded key scope keeps every other start away from a copy that is not
/// whole yet, and from a source that its copy has taken the place of.
namespace idem {

inline namespace v0_1 {

/// Shared by the openings of one copy.
struct CopiedIdentity {
  enum class Opening : std::uint8_t {
    read,   ///< Of the source: notes what is recorded there.
    close,  ///< Likewise; and no reserve or claim of any process begins work there any more.
    move,  ///< Of the source that is closed for the target: it is closed for no other one any more.
    reopen,  ///< Of the source: takes the mark of `close` away, unless it was moved.
    look,    ///< Of the target: notes whether it is in use; records nothing.
    begin,   ///< Of the target: records what was noted, with the mark of an unfinished copy.
    end,     ///< Of the target: takes the mark away, if no other run began meanwhile.
  };
  Opening opening = Opening::read;
  RecordedIdentity recorded{};  ///< The source's, without a mark.
  Naming naming{};              ///< The source's.
  /// The copy that the source was closed for before this opening; empty: it was not closed.
  std::string closed_for{};
  bool is_moved = false;    ///< The source was moved to that copy before this opening.
  std::string target_id{};  ///< Of `close`, `move`, `reopen`: the OpenedStore::id of the copy.
  std::string lost_copy{};  ///< Of `close`: one that it may have been closed for before.
  /// The source's generation when it was closed: `move` is refused if it was opened and closed
  /// again.
  std::uint64_t closed_generation = 0;
  /// Of `begin`: the target's generation until the next one. The writes of a run that another one
  /// followed are refused by it.
  std::uint64_t run = 0;
  bool is_finished = false;  ///< Of `look`: the target has no mark.
  bool is_missing = false;   ///< Of `look`: nothing is recorded there.
  /// The source is a backup that was made for this copy, beside the process that has the store:
  /// what runs in it still runs, and stays as it is.
  bool is_snapshot = false;
};

}  // namespace v0_1

/// A source that is closed for a name that begins so is about to be opened again.
inline constexpr std::string_view undone_copies = "undo-";

/// As settle_identity(), for an opening of a copy.
std::expected<Identity, std::string> settle_copied(std::optional<RecordedIdentity>& recorded,
                                                   CopiedIdentity& copied);

/// Notes the naming of a copy's source, or puts it in place of its target's; does nothing for other
/// openings. True: `naming` changed, and is to be recorded.
bool settle_naming(const WhichStore& which, Naming& naming);

/// A sentence: why nobody may begin work in a store with this recorded key scope. None: it has no
/// mark.
std::optional<std::string> why_marked(const std::string& key_scope);

}  // namespace idem
