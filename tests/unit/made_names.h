/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names without a name service: "filer" has the addresses 127.0.0.2 and 127.0.0.1, in this order; numeric ones of IPv4
 * are what they are; there are no others. */
#ifndef TESTS_MADE_NAMES_H
#define TESTS_MADE_NAMES_H

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

struct made_name { struct addrinfo info; struct sockaddr_in at; };

static struct addrinfo *made_address(in_addr_t address, const char *service, const struct addrinfo *hints) {
    struct made_name *n = calloc(1, sizeof *n);
    if (!n) abort();
    n->at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = address,
                                  .sin_port = htons((uint16_t)(service ? atoi(service) : 0)) };
    n->info = (struct addrinfo){ .ai_family = AF_INET, .ai_socktype = hints ? hints->ai_socktype : SOCK_STREAM,
                                 .ai_addr = (struct sockaddr *)&n->at, .ai_addrlen = sizeof n->at };
    return &n->info;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list) {
    struct in_addr address;
    if (name && strcmp(name, "filer") == 0) {
        *list = made_address(inet_addr("127.0.0.2"), service, hints);
        (*list)->ai_next = made_address(inet_addr("127.0.0.1"), service, hints);
        return 0;
    }
    if (!name || inet_pton(AF_INET, name, &address) != 1) return EAI_NONAME;
    *list = made_address(address.s_addr, service, hints);
    return 0;
}

void freeaddrinfo(struct addrinfo *list) {
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list);
        list = next;
    }
}

#endif
