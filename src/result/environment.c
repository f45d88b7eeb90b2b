/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result/environment.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "result/fields.h"
#include "result/json.h"

#define VALUE_MAX 256

/* First line of a file, without the blanks around it; NULL where there is none. */
static const char *read_line(const char *path, char buf[VALUE_MAX]) {
    FILE *f = fopen(path, "re");
    if (!f) return NULL;
    char *line = fgets(buf, VALUE_MAX, f);
    fclose(f);
    if (!line) return NULL;
    line += strspn(line, " \t");
    line[strcspn(line, "\n")] = '\0';
    for (size_t n = strlen(line); n && (line[n - 1] == ' ' || line[n - 1] == '\t'); n--) line[n - 1] = '\0';
    for (char *c = line; *c; c++)
        if (*c == '\t') *c = ' ';
    return line;
}

static json_t *text_file(const char *root, const char *name) {
    char path[512], buf[VALUE_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return json_of_text(read_line(path, buf));
}

static json_t *number_file(const char *root, const char *name) {
    char path[512], buf[VALUE_MAX], *end;
    snprintf(path, sizeof path, "%s/%s", root, name);
    const char *text = read_line(path, buf);
    if (!text || !text[0]) return json_null();
    long long value = strtoll(text, &end, 10);
    return *end || value < 0 ? json_null() : json_integer(value); /* a NIC without a link has speed -1 */
}

/* Value of the first line "name : value" of a file; null where there is none. */
static json_t *field_of(const char *root, const char *file, const char *name) {
    char path[512], line[512];
    json_t *value = NULL;
    snprintf(path, sizeof path, "%s/%s", root, file);
    FILE *f = fopen(path, "re");
    if (!f) return json_null();
    while (!value && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, name, strlen(name)) != 0) continue;
        line[strcspn(line, "\n")] = '\0';
        colon++;
        value = json_of_text(colon + strspn(colon, " \t"));
    }
    fclose(f);
    return value ? value : json_null();
}

static json_t *memory_bytes(const char *proc) {
    json_t *text = field_of(proc, "meminfo", "MemTotal"), *bytes = json_null();
    if (json_is_string(text)) bytes = json_of_uint(strtoull(json_string_value(text), NULL, 10) * 1024); /* in kB */
    json_decref(text);
    return bytes;
}

static json_t *sysctls(const char *proc) {
    static const char *const names[] = {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.core.rmem_max",
                                        "net.core.wmem_max", "net.ipv4.tcp_congestion_control"};
    json_t *j = json_object();
    for (size_t i = 0; j && i < sizeof names / sizeof *names; i++) {
        char file[80];
        snprintf(file, sizeof file, "sys/%s", names[i]);
        for (char *c = file; *c; c++)
            if (*c == '.') *c = '/';
        json_object_set_new(j, names[i], text_file(proc, file));
    }
    return j;
}

static int is_visible(const struct dirent *e) {
    return e->d_name[0] != '.';
}

static json_t *nic(const char *folder, const char *name) {
    struct fields j = fields_new();
    fields_text(&j, "name", name);
    fields_put(&j, "speed_mbit", number_file(folder, "speed"));
    fields_put(&j, "mtu", number_file(folder, "mtu"));
    return fields_end(&j);
}

static json_t *nics(const char *sys) {
    char dir[256];
    struct dirent **list;
    json_t *j = json_array();
    snprintf(dir, sizeof dir, "%s/class/net", sys);
    int n = scandir(dir, &list, is_visible, alphasort);
    for (int i = 0; i < n; i++) {
        char name[512], buf[VALUE_MAX], path[1024];
        snprintf(name, sizeof name, "%s/%s", dir, list[i]->d_name);
        snprintf(path, sizeof path, "%s/operstate", name);
        const char *state = read_line(path, buf);
        /* Loopback and tunnels are "unknown" when they are up. */
        if (j && state && (!strcmp(state, "up") || !strcmp(state, "unknown")))
            json_array_append_new(j, nic(name, list[i]->d_name));
        free(list[i]);
    }
    if (n >= 0) free(list);
    return j;
}

static json_t *library_versions(const struct kv *libraries) {
    json_t *j = json_of_kv(libraries);
    if (j) json_object_set_new(j, "jansson", json_string(JANSSON_VERSION));
    return j;
}

static json_t *clock_facts(const char *sys, double cost_ns) {
    struct fields j = fields_new();
    fields_put(&j, "source", text_file(sys, "devices/system/clocksource/clocksource0/current_clocksource"));
    fields_real(&j, "cost_ns", cost_ns);
    return fields_end(&j);
}

json_t *environment_json(const char *proc, const char *sys, const struct kv *libraries, double clock_cost_ns) {
    char host[256] = "";
    struct utsname u;
    struct fields j = fields_new();
    if (gethostname(host, sizeof host - 1)) host[0] = '\0';
    if (uname(&u)) memset(&u, 0, sizeof u);
    fields_text(&j, "host", host);
    fields_text(&j, "kernel", u.release);
    fields_text(&j, "machine", u.machine);
    fields_put(&j, "cpu", field_of(proc, "cpuinfo", "model name"));
    fields_ns(&j, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    fields_put(&j, "memory_bytes", memory_bytes(proc));
    fields_put(&j, "clock", clock_facts(sys, clock_cost_ns));
    fields_put(&j, "sysctls", sysctls(proc));
    fields_put(&j, "libraries", library_versions(libraries));
    fields_put(&j, "nics", nics(sys));
    return fields_end(&j);
}
