#include "cli/commands/migrate_command.hpp"

#include "cli/commands.hpp"
#include "store/known_kinds.hpp"

#include <idem/open_store.hpp>

#include <csignal>
#include <cstdio>
#include <filesystem>

namespace idem::cli {

MigrateCommand::MigrateCommand(CLI::App& app)
    : command_(*app.add_subcommand("migrate", "Create or upgrade the schema of a store")) {
  command_
      .add_option("url,--store", store_,
                  "URL of the store: " + listed(&KnownKind::has_schema, usual_form, ", ") +
                      " or hybrid:... (its truth); the others have no schema")
      ->envname("IDEM_STORE")
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

bool MigrateCommand::parsed() const { return command_.parsed(); }

int MigrateCommand::run() const {
  // At the limit of a file's size a write fails, and the signal must not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  if (store_.empty()) {
    std::fprintf(stderr, "idem migrate: there is no store; write its URL, or set IDEM_STORE\n");
    return usage;
  }
  if (const auto known = check_store_url(store_); !known) {
    std::fprintf(stderr, "idem migrate: --store: %s\n", known.error().c_str());
    return usage;
  }
  const auto migrated = migrate_store(absolute_store_url(store_, std::filesystem::current_path()));
  if (!migrated) {
    std::fprintf(stderr, "idem migrate: %s\n", migrated.error().c_str());
    return failed;
  }
  if (migrated->place.empty()) {
    std::puts("this store has no schema, so there is nothing to upgrade");
  } else {
    std::printf("%s: %s\nstore_id %s\n", migrated->place.c_str(),
                migrated->is_new ? "there was no store; a new, empty one was created"
                                 : "the schema is that of this version",
                migrated->id.c_str());
  }
  return done;
}

}  // namespace idem::cli
