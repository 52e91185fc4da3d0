/* SPDX-License-Identifier: MIT
 *
 * How the ranks of a group find each other: each rank is connected to each other rank, by a Unix
 * socket or by TCP on the loopback interface. */
#ifndef TN_COMM_LOCAL_MESH_H
#define TN_COMM_LOCAL_MESH_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "group.h"

enum {
    MESH_TOKEN = 32, /* characters of a token: 128 bits in hexadecimal */
    MESH_CONTROL = CMSG_SPACE(sizeof(int))
};

/* An address: a path, to which each rank appends its number, or a port, to which it adds it. */
struct mesh_address {
    bool tcp;
    uint16_t port;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/* Reads an address: a path with a slash, or 127.0.0.1:PORT. */
tn_status mesh_read_address(struct mesh_address *out, const char *text, int32_t size);
/* Connects the ranks of a group. `token` is "" or MESH_TOKEN characters, the same in all
 * ranks. */
tn_status mesh_connect(struct group *group, const struct mesh_address *address, const char *token);

#endif
