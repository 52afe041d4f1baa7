#include "cli/commands/migrate_command.hpp"

#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal/messages.hpp"
#include "cli/terminal/progress.hpp"
#include "json/writer.hpp"
#include "store/known_kinds.hpp"

#include <idem/open_store.hpp>

#include <csignal>
#include <cstdio>
#include <filesystem>

namespace idem::cli {
namespace {

void print_store(const OpenedStore& store) {
  if (store.place.empty()) {
    std::puts("this store has no schema, so there is nothing to upgrade");
    return;
  }
  std::printf("%s: %s\nstore_id %s\n", store.place.c_str(),
              store.is_new ? "there was no store; a new, empty one was created"
                           : "the schema is that of this version",
              store.id.c_str());
}

void print_store_as_json(const OpenedStore& store) {
  const bool has_schema = !store.place.empty();
  json::Writer out;
  out.begin_object();
  out.flag("has_schema", has_schema);
  if (has_schema) {
    out.member("store", store.place);
    out.member("store_id", store.id);
    out.flag("is_new", store.is_new);
  }
  out.end_object();
  print_json(out.take());
}

}  // namespace

MigrateCommand::MigrateCommand(const Command& program)
    : command_(program.add_command("migrate", "Create or upgrade the schema of a store")) {
  command_
      .add_option("url,--store", store_,
                  "URL of the store: " + listed(&KnownKind::has_schema, usual_form, ", ") +
                      " or hybrid:... (its truth); the others have no schema")
      .variable("IDEM_STORE")
      .once();
  command_.add_flag("--json", json_, json_help);
}

bool MigrateCommand::parsed() const { return command_.parsed(); }

int MigrateCommand::run() const {
  // At the limit of a file's size a write fails, and the signal must not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  if (store_.empty()) {
    return say_error("migrate", "there is no store; write its URL, or set IDEM_STORE", usage);
  }
  if (const auto known = check_store_url(store_); !known) {
    return say_error("migrate", "--store: " + known.error(), usage);
  }
  const auto migrated = [&] {
    const Progress progress("idem migrate: ", "the store is opened");
    return migrate_store(absolute_store_url(store_, std::filesystem::current_path()));
  }();
  if (!migrated) return say_error("migrate", migrated.error(), failed);
  json_ ? print_store_as_json(*migrated) : print_store(*migrated);
  return done;
}

}  // namespace idem::cli
