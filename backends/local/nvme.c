/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/nvme.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/local/sysfs.h"
#include "base/text.h"

struct paths {
    const char *transport; /* of all so far; NULL: none yet */
    char text[1024];
    unsigned n, down;
};

static const char *transport_name(const char *word) {
    static const char *const names[][2] = {
        {"tcp", "NVMe/TCP"}, {"fc", "NVMe/FC"}, {"rdma", "NVMe/RDMA"}, {"pcie", "NVMe/PCIe"}, {"loop", "NVMe/loop"}
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(word, names[i][0])) return names[i][1];
    return "NVMe";
}

static void note(struct kv *out, const char *prefix, const char *name, const char *value) {
    char key[64], safe[1100];
    snprintf(key, sizeof key, "%s%s", prefix, name);
    if (*value) kv_text(out, key, "%s", text_safe(safe, sizeof safe, value, strlen(value)));
}

/* The path of namespace "nvme0n1" by a controller is its folder "nvme0c1n1". */
static void ana_state(const char *controller, const char *name, char *buf, size_t len) {
    int subsystem, ns, s, c, n;
    *buf = 0;
    if (sscanf(name, "nvme%dn%d", &subsystem, &ns) != 2) return;
    DIR *dir = opendir(controller);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (sscanf(e->d_name, "nvme%dc%dn%d", &s, &c, &n) == 3 && s == subsystem && n == ns &&
            sysfs_text(buf, len, "%s/%s/ana_state", controller, e->d_name))
            break;
    if (dir) closedir(dir);
}

static void add_path(struct paths *p, const char *folder, const char *controller, const char *namespace) {
    char path[PATH_MAX + 300], word[32], address[200], state[32], ana[32];
    snprintf(path, sizeof path, "%s/%s", folder, controller);
    if (!sysfs_text(word, sizeof word, "%s/transport", path)) return;
    if (!sysfs_text(address, sizeof address, "%s/address", path)) *address = 0;
    if (!sysfs_text(state, sizeof state, "%s/state", path)) *state = 0;
    ana_state(path, namespace, ana, sizeof ana);
    const char *name = transport_name(word);
    if (!p->transport) p->transport = name;
    else if (strcmp(p->transport, name)) p->transport = "NVMe/mixed";
    p->down += (*state && strcmp(state, "live")) || !strcmp(ana, "inaccessible") || !strcmp(ana, "persistent-loss");
    size_t at = strlen(p->text);
    snprintf(p->text + at, sizeof p->text - at, "%s%s %s %s%s%s%s%s", p->n++ ? "; " : "", controller, word, address,
             *state ? " " : "", state, *ana ? " " : "", ana);
}

static bool is_controller(const char *name) {
    size_t n = strlen("nvme");
    if (strncmp(name, "nvme", n) || !isdigit((unsigned char)name[n])) return false;
    while (isdigit((unsigned char)name[n])) n++;
    return !name[n];
}

/* Under the kernel's own multipathing "device" is the subsystem, which has its controllers in it. */
static void read_subsystem(const char *disk, const char *namespace, struct paths *p) {
    char folder[PATH_MAX];
    struct dirent **list;
    snprintf(folder, sizeof folder, "%s/device", disk);
    int n = scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (is_controller(list[i]->d_name)) add_path(p, folder, list[i]->d_name, namespace);
        free(list[i]);
    }
    if (n >= 0) free(list);
}

const char *nvme_transport(const char *disk, const char *prefix, struct kv *out) {
    static const char *const single[] = {"transport", "address", "state", NULL};
    struct paths p = {.n = 0};
    char text[256], key[40], *real = realpath(disk, NULL);
    if (sysfs_text(text, sizeof text, "%s/device/transport", disk)) {
        p.transport = transport_name(text);
        for (const char *const *name = single; *name; name++) {
            snprintf(key, sizeof key, "nvme_%s", *name);
            if (sysfs_text(text, sizeof text, "%s/device/%s", disk, *name)) note(out, prefix, key, text);
        }
    } else {
        read_subsystem(disk, real ? strrchr(real, '/') + 1 : "", &p);
        note(out, prefix, "paths", p.text);
        snprintf(key, sizeof key, "%spaths_failed", prefix);
        if (p.n) kv_uint(out, key, p.down);
        snprintf(key, sizeof key, "%spath_count", prefix);
        if (p.n) kv_uint(out, key, p.n);
        if (sysfs_text(text, sizeof text, "%s/device/iopolicy", disk)) note(out, prefix, "nvme_iopolicy", text);
    }
    if (sysfs_text(text, sizeof text, "%s/device/subsysnqn", disk)) note(out, prefix, "nvme_subsystem", text);
    free(real);
    return p.transport ? p.transport : "NVMe";
}
