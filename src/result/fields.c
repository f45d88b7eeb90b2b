/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result/fields.h"

#include "result/json.h"

struct fields fields_new(void) {
    return (struct fields){.object = json_object()};
}

void fields_put(struct fields *f, const char *name, json_t *value) {
    if (json_object_set_new(f->object, name, value)) f->failed = true;
}

void fields_count(struct fields *f, const char *name, uint64_t value) {
    fields_put(f, name, json_of_uint(value));
}

void fields_ns(struct fields *f, const char *name, int64_t value) {
    fields_put(f, name, json_integer(value));
}

void fields_real(struct fields *f, const char *name, double value) {
    fields_put(f, name, json_of_double(value));
}

void fields_bool(struct fields *f, const char *name, bool value) {
    fields_put(f, name, json_boolean(value));
}

void fields_text(struct fields *f, const char *name, const char *value) {
    fields_put(f, name, json_of_text(value));
}

void fields_word(struct fields *f, const char *name, const char *value) {
    fields_text(f, name, value[0] ? value : NULL);
}

json_t *fields_end(struct fields *f) {
    if (!f->failed) return f->object;
    json_decref(f->object);
    return NULL;
}
