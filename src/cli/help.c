/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <jansson.h>
#include <string.h>

#include "backends/backend.h"
#include "cli/command.h"
#include "pattern/pattern.h"

static const struct {
    const char *form, *example, *what;
} target_forms[] = {
    {"nfs://HOST[:PORT]/EXPORT/PATH[?KEY=VALUE&...]", "nfs://host/export/path", "a file on an NFS server (NFSv3)"},
    {"iscsi://[USER%PASS@]HOST[:PORT]/IQN/LUN[?KEY=VALUE&...]", "iscsi://host/iqn.2001-04.com.example:disk/0",
     "a LUN of an iSCSI target"},
    {"/dev/NAME", "/dev/sda", "a block device: FC, SAS, NVMe, kernel iSCSI, dm-multipath"},
    {"/PATH, file:/PATH", "/mnt/file", "a file on any mounted file system"},
    {"null:[?KEY=VALUE&...]", "null:", "no I/O at all: measures samedisk itself"},
};

void help_overview(FILE *out) {
    fputs("Compares NFS, iSCSI and FC (or any block device, or file system) on the same disks.\n\nCommands\n", out);
    for (const struct command *c = command_table; c->name; c++)
        fprintf(out, "  samedisk %s %s\n      %s\n", c->name, c->synopsis, c->summary);
    fputs("  samedisk help [COMMAND]\n      this, or the options of a command\n", out);
    fputs("\nTargets, each with its own label as in fc=/dev/sdc; the same label twice adds a member\n", out);
    for (size_t i = 0; i < sizeof target_forms / sizeof *target_forms; i++)
        fprintf(out, "  %s\n      %s\n", target_forms[i].form, target_forms[i].what);
    fputs("\nOptions\n", out);
    options_help(NULL, out);
    fputs("  --KEY VALUE                 any pattern key: --rounds 4, --size 10g, --iodepth 32 (samedisk run --help)\n"
          "\nExit status: 0 well, 1 usage or refused, 2 I/Os failed, 3 a target could not be opened or was lost,\n"
          "130 interrupted. The manual: man samedisk.\n",
          out);
}

/* A bare path is taken as it is, so that it has no place for them. */
static const char *in_url(const char *backend) {
    if (!strcmp(backend, "block")) return "file:/dev/NAME?KEY=VALUE";
    return strcmp(backend, "file") ? "in the URL" : "file:/PATH?KEY=VALUE";
}

static void help_keys(FILE *out) {
    const struct backend *const *all = backend_all();
    fputs("\nPattern keys (in pattern files without the --)\n", out);
    option_help(pattern_options, "--", out);
    for (size_t i = 0; all[i]; i++) {
        if (!all[i]->options->name) continue;
        fprintf(out, "\nAccess keys of %s targets: %s, or --set LABEL.KEY=VALUE\n", all[i]->name, in_url(all[i]->name));
        option_help(all[i]->options, "", out);
    }
}

void help_command(const struct command *command, FILE *out) {
    fprintf(out, "samedisk %s %s\n%s\n\nOptions\n", command->name, command->synopsis, command->summary);
    options_help(command->options, out);
    if (command->pattern_keys) help_keys(out);
}

void help_version(FILE *out) {
    fprintf(out, "samedisk %s\n", PACKAGE_VERSION);
    for (size_t i = 0; i < sizeof target_forms / sizeof *target_forms; i++) {
        struct url url;
        struct err err;
        const struct backend *backend =
            url_parse(target_forms[i].example, &url, &err) ? NULL : backend_for_url(&url, &err);
        const char *library = backend && backend->library ? backend->library() : NULL;
        if (backend)
            fprintf(out, "  %-8s %s%s%s\n", backend->name, backend->summary, library ? ", " : "",
                    library ? library : "");
        else
            fprintf(out, "  left out: %s\n", target_forms[i].form);
        url_free(&url);
    }
    fprintf(out, "  %-8s jansson %s\n", "results", JANSSON_VERSION);
}
