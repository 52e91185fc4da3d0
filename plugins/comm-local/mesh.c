/* SPDX-License-Identifier: MIT
 *
 * Connects the ranks. Each rank listens, connects to all ranks below it, and is connected to by
 * those above it. Both sides of a connection begin with a greeting, and a connection whose token or
 * user is another one is closed. */
#include "mesh.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reduce.h"

enum {
    STRANGERS = 16, /* connections that may be open beside those of the ranks */
    PAUSE = 5,      /* ms between two attempts to connect */
    FILES = 3 * REDUCE_RANKS + STRANGERS + 1
};

/* What both sides of a connection send first. */
struct greeting {
    char magic[8];
    char token[MESH_TOKEN];
    int32_t rank, size;
    uint64_t board; /* the size of a board */
    uint64_t shared;
};

static const char magic[8] = "tenon-c1";

/* A connection whose greeting has not arrived. */
struct link {
    int socket;   /* -1: none */
    int32_t rank; /* the rank that was called; -1: the other side has called */
    size_t arrived;
    struct greeting greeting;
};

struct mesh {
    struct group *group;
    const struct mesh_address *address;
    struct greeting own;
    int listener;
    int64_t end; /* the deadline */
    int refused; /* connections of strangers */
    int32_t count;
    struct link *links; /* those of rank r at r, then those that were accepted */
};

/* ---- addresses ------------------------------------------------------------------------------- */

static bool is_loopback(const char *host, size_t length)
{
    return (length == 9 && memcmp(host, "localhost", 9) == 0) ||
           (length == 9 && memcmp(host, "127.0.0.1", 9) == 0);
}

tn_status mesh_read_address(struct mesh_address *out, const char *text, int32_t size)
{
    const char *colon = text != NULL ? strrchr(text, ':') : NULL;
    int64_t port;

    memset(out, 0, sizeof *out);
    if (text == NULL || *text == '\0')
        return tn_fail(TN_ERR_VALUE,
                       "local: address: missing for %d processes; expected a path "
                       "such as /run/user/1000/job/comm, or 127.0.0.1:PORT",
                       (int)size);
    if (strchr(text, '/') != NULL) {
        if (strlen(text) + 8 > sizeof out->path)
            return tn_fail(TN_ERR_VALUE,
                           "local: address: too long, got %zu characters; expected at most %zu",
                           strlen(text), sizeof out->path - 8);
        memcpy(out->path, text, strlen(text) + 1);
        return TN_OK;
    }
    if (colon == NULL || !tn_read_int(colon + 1, &port) || port < 1 || port + size > 65536)
        return tn_fail(TN_ERR_VALUE,
                       "local: address: wrong, got %q; expected a path with a slash, or "
                       "127.0.0.1:PORT with a port from 1 to %d",
                       text, 65536 - (int)size);
    if (!is_loopback(text, (size_t)(colon - text)))
        return tn_fail(TN_ERR_VALUE,
                       "local: address: another host, got %q; this communicator serves the "
                       "processes of one host, and Tenon has none yet for several hosts; expected "
                       "127.0.0.1:PORT or a path",
                       text);
    out->tcp = true;
    out->port = (uint16_t)port;
    return TN_OK;
}

/* Stores the socket address of a rank; returns its length. */
static socklen_t socket_address(const struct mesh_address *address, int32_t rank,
                                struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (address->tcp) {
        struct sockaddr_in *in = (struct sockaddr_in *)out;

        in->sin_family = AF_INET;
        in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        in->sin_port = htons((uint16_t)(address->port + rank));
        return sizeof *in;
    }
    struct sockaddr_un *un = (struct sockaddr_un *)out;

    un->sun_family = AF_UNIX;
    tn_snprint(un->sun_path, sizeof un->sun_path, "%s.%d", address->path, (int)rank);
    return sizeof *un;
}

/* Writes the address of a rank for messages. */
static const char *address_text(const struct mesh_address *address, int32_t rank, char *out,
                                size_t size)
{
    if (address->tcp)
        tn_snprint(out, size, "127.0.0.1:%d", address->port + (int)rank);
    else
        tn_snprint(out, size, "%s.%d", address->path, (int)rank);
    return out;
}

static int new_socket(const struct mesh_address *address)
{
    const int one = 1;
    int file = socket(address->tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (file >= 0 && address->tcp)
        setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return file;
}

/* Tells whether the process at the other end has the user of this one. TCP does not tell: there
 * the token decides. */
static bool is_own_user(const struct mesh *mesh, int file)
{
    struct ucred other;
    socklen_t size = sizeof other;

    return mesh->address->tcp || (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
                                  other.uid == geteuid());
}

/* ---- listening ------------------------------------------------------------------------------- */

/* Removes the socket that a process left which was killed. Other files are not ours, although they
 * refuse connections, too. */
static bool remove_stale(const struct mesh *mesh, const struct sockaddr *at, socklen_t size)
{
    const char *path = ((const struct sockaddr_un *)at)->sun_path;
    int file = mesh->address->tcp ? -1 : new_socket(mesh->address);
    bool stale = file >= 0 && connect(file, at, size) != 0 && errno == ECONNREFUSED;
    struct stat facts;

    if (file >= 0)
        close(file);
    if (stale && lstat(path, &facts) == 0 && S_ISSOCK(facts.st_mode))
        return unlink(path) == 0;
    errno = EADDRINUSE;
    return false;
}

static tn_status listen_here(struct mesh *mesh)
{
    const int32_t rank = mesh->group->rank;
    struct sockaddr_storage at;
    const socklen_t size = socket_address(mesh->address, rank, &at);
    const int one = 1;
    char text[128];
    int file = new_socket(mesh->address);
    bool bound;

    if (file >= 0 && mesh->address->tcp)
        setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bound = file >= 0 &&
            (bind(file, (struct sockaddr *)&at, size) == 0 ||
             (errno == EADDRINUSE && remove_stale(mesh, (struct sockaddr *)&at, size) &&
              bind(file, (struct sockaddr *)&at, size) == 0));
    if (bound)
        mesh->listener = file;
    if (bound && (mesh->address->tcp || chmod(((struct sockaddr_un *)&at)->sun_path, 0600) == 0) &&
        listen(file, mesh->group->size + STRANGERS) == 0)
        return TN_OK;
    tn_fail_native(TN_ERR_IO, errno,
                   "local: address: rank %d cannot listen at %s: %s; expected an address that no "
                   "other program uses, in a folder that can be written",
                   (int)rank, address_text(mesh->address, rank, text, sizeof text),
                   strerror(errno));
    if (file >= 0 && !bound)
        close(file);
    return TN_ERR_IO;
}

static void stop_listening(struct mesh *mesh)
{
    struct sockaddr_storage at;

    if (mesh->listener < 0)
        return;
    close(mesh->listener);
    mesh->listener = -1;
    socket_address(mesh->address, mesh->group->rank, &at);
    if (!mesh->address->tcp)
        unlink(((struct sockaddr_un *)&at)->sun_path);
}

/* ---- greetings ------------------------------------------------------------------------------- */

static void hang_up(struct link *link)
{
    if (link->socket >= 0)
        close(link->socket);
    *link = (struct link){ .socket = -1, .rank = -1 };
}

static bool greet(const struct mesh *mesh, int file)
{
    return send(file, &mesh->own, sizeof mesh->own, MSG_NOSIGNAL) == sizeof mesh->own;
}

/* Compares tokens in a time that does not depend on them. */
static bool same_token(const char *a, const char *b)
{
    int differ = 0;

    for (int i = 0; i < MESH_TOKEN; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}

/* Checks the greeting of another rank, and makes its connection one of the group. */
static tn_status welcome(struct mesh *mesh, struct link *link)
{
    const struct greeting *other = &link->greeting, *own = &mesh->own;
    const int32_t rank = other->rank;

    if (memcmp(other->magic, magic, sizeof magic) != 0 || !same_token(other->token, own->token)) {
        mesh->refused++;
        hang_up(link);
        return TN_OK;
    }
    if (link->rank < 0)
        greet(mesh, link->socket); /* before the checks, so that the other side fails as well */
    if (other->size != own->size)
        return tn_fail(TN_ERR_VALUE,
                       "local: size: rank %d has a group of %d ranks, rank %d of %d; expected the "
                       "same size in all ranks",
                       (int)own->rank, (int)own->size, (int)rank, (int)other->size);
    if (other->board != own->board || other->shared != own->shared)
        return tn_fail(TN_ERR_VERSION, "local: rank %d has another version of the communicator",
                       (int)rank);
    if (rank < 0 || rank >= own->size || rank == own->rank ||
        (link->rank >= 0 ? rank != link->rank : rank < own->rank) ||
        mesh->group->peers[rank].socket >= 0)
        return tn_fail(TN_ERR_VALUE,
                       "local: rank: two processes have rank %d of %d; expected one process for "
                       "each rank",
                       (int)rank, (int)own->size);
    mesh->group->peers[rank].socket = link->socket;
    link->socket = -1;
    return TN_OK;
}

/* Receives a part of a greeting. */
static tn_status hear(struct mesh *mesh, struct link *link)
{
    ssize_t n = recv(link->socket, (char *)&link->greeting + link->arrived,
                     sizeof link->greeting - link->arrived, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return TN_OK;
    if (n <= 0) {
        hang_up(link);
        return TN_OK;
    }
    link->arrived += (size_t)n;
    return link->arrived == sizeof link->greeting ? welcome(mesh, link) : TN_OK;
}

/* Calls the ranks below this one that have no connection yet. */
static void call_ranks(struct mesh *mesh)
{
    for (int32_t r = 0; r < mesh->group->rank; r++) {
        struct link *link = &mesh->links[r];
        struct sockaddr_storage at;
        const socklen_t size = socket_address(mesh->address, r, &at);

        if (link->socket >= 0 || mesh->group->peers[r].socket >= 0)
            continue;
        link->socket = new_socket(mesh->address);
        link->rank = r;
        link->arrived = 0;
        if (link->socket >= 0 && (connect(link->socket, (struct sockaddr *)&at, size) != 0 ||
                                  !is_own_user(mesh, link->socket) || !greet(mesh, link->socket)))
            hang_up(link);
    }
}

static void accept_rank(struct mesh *mesh)
{
    const int one = 1;
    int file = accept4(mesh->listener, NULL, NULL, SOCK_CLOEXEC);

    if (file >= 0 && mesh->address->tcp)
        setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (int32_t i = mesh->group->size; i < mesh->count && file >= 0; i++) {
        if (mesh->links[i].socket >= 0)
            continue;
        mesh->links[i] = (struct link){ .socket = file, .rank = -1 };
        if (is_own_user(mesh, file))
            return;
        mesh->refused++;
        hang_up(&mesh->links[i]);
        return;
    }
    if (file >= 0)
        close(file);
}

/* ---- the group ------------------------------------------------------------------------------- */

static int32_t missing(const struct mesh *mesh)
{
    int32_t count = 0;

    for (int32_t r = 0; r < mesh->group->size; r++)
        count += r != mesh->group->rank && mesh->group->peers[r].socket < 0;
    return count;
}

static tn_status too_late(const struct mesh *mesh)
{
    char ranks[256] = "", text[128], strangers[96] = "";
    size_t length = 0;

    for (int32_t r = 0; r < mesh->group->size && length + 16 < sizeof ranks; r++)
        if (r != mesh->group->rank && mesh->group->peers[r].socket < 0)
            length += (size_t)tn_snprint(ranks + length, sizeof ranks - length, "%s%d",
                                         length > 0 ? ", " : "", (int)r);
    if (mesh->refused > 0)
        tn_snprint(strangers, sizeof strangers,
                   "; %d connections with another token or user were refused", mesh->refused);
    return tn_fail(TN_ERR_TIMEOUT,
                   "local: rank %d at %s has waited %.1f s for rank %s%s; expected %d processes "
                   "with this address",
                   (int)mesh->group->rank,
                   address_text(mesh->address, mesh->group->rank, text, sizeof text),
                   mesh->group->timeout, ranks, strangers, (int)mesh->group->size);
}

/* Waits a moment for connections and greetings. Fails if a rank that was connected is gone. */
static tn_status listen_once(struct mesh *mesh)
{
    struct pollfd files[FILES];
    struct link *links[FILES];
    nfds_t count = 0;
    tn_status status = TN_OK;

    for (int32_t r = 0; r < mesh->group->size; r++)
        if (r != mesh->group->rank && mesh->group->peers[r].socket >= 0) {
            links[count] = NULL;
            files[count++] = (struct pollfd){ mesh->group->peers[r].socket, POLLRDHUP, 0 };
        }
    for (int32_t i = 0; i < mesh->count; i++)
        if (mesh->links[i].socket >= 0) {
            links[count] = &mesh->links[i];
            files[count++] = (struct pollfd){ mesh->links[i].socket, POLLIN, 0 };
        }
    links[count] = NULL;
    files[count++] = (struct pollfd){ mesh->listener, POLLIN, 0 };
    if (poll(files, count, PAUSE) <= 0)
        return TN_OK;
    for (nfds_t i = 0; i + 1 < count && status == TN_OK; i++)
        if (files[i].revents != 0 && links[i] != NULL)
            status = hear(mesh, links[i]);
        else if (files[i].revents != 0)
            status = tn_fail(TN_ERR_PEER,
                             "local: a process of the group has ended before all %d "
                             "were there",
                             (int)mesh->group->size);
    if (status == TN_OK && (files[count - 1].revents & POLLIN))
        accept_rank(mesh);
    return status;
}

/* Sends a byte to a rank, and a descriptor unless it is -1. */
static bool send_byte(int to, int file)
{
    union {
        struct cmsghdr align;
        char bytes[MESH_CONTROL];
    } control = { .bytes = { 0 } };
    char byte = 'g';
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    if (file >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof file);
        memcpy(CMSG_DATA(head), &file, sizeof file);
    }
    return sendmsg(to, &message, MSG_NOSIGNAL) == 1;
}

/* Waits for a byte of a rank, and stores the descriptor that comes with it; -1: none. */
static tn_status receive_byte(struct mesh *mesh, int32_t from, int *file)
{
    struct pollfd socket = { mesh->group->peers[from].socket, POLLIN, 0 };
    union {
        struct cmsghdr align;
        char bytes[MESH_CONTROL];
    } control;
    char byte;
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t n = -1;

    *file = -1;
    while (poll(&socket, 1, PAUSE) <= 0)
        if (group_now() > mesh->end)
            return tn_fail(TN_ERR_TIMEOUT, "local: rank %d has not answered for %.1f s", (int)from,
                           mesh->group->timeout);
    n = recvmsg(socket.fd, &message, MSG_CMSG_CLOEXEC);
    if (n != 1)
        return tn_fail(TN_ERR_PEER, "local: rank %d has ended before all %d were there", (int)from,
                       (int)mesh->group->size);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head != NULL && head->cmsg_type == SCM_RIGHTS && head->cmsg_len >= CMSG_LEN(sizeof *file))
        memcpy(file, CMSG_DATA(head), sizeof *file);
    return TN_OK;
}

/* Rank 0 creates the boards and gives them to the others, when no rank listens any more: the next
 * group may then use the same address. */
static tn_status share_boards(struct mesh *mesh)
{
    struct group *group = mesh->group;
    tn_status status = TN_OK;
    int file;

    if (group->rank > 0) {
        if (!send_byte(group->peers[0].socket, -1))
            return tn_fail(TN_ERR_PEER, "local: rank 0 has ended before all were there");
        status = receive_byte(mesh, 0, &file);
        if (status != TN_OK)
            return status;
        if (file >= 0 && group->shared)
            return board_map(&group->boards, group->size, file);
        if (file >= 0)
            close(file);
        return group->shared ? tn_fail(TN_ERR_PEER, "local: rank 0 has sent no shared memory")
                             : board_create(&group->boards, group->size, false);
    }
    status = board_create(&group->boards, group->size, group->shared);
    for (int32_t r = 1; r < group->size && status == TN_OK; r++) {
        status = receive_byte(mesh, r, &file);
        if (file >= 0)
            close(file);
    }
    for (int32_t r = 1; r < group->size && status == TN_OK; r++)
        if (!send_byte(group->peers[r].socket, group->boards.file))
            status = tn_fail(TN_ERR_PEER, "local: rank %d has ended before all were there", (int)r);
    return status;
}

static tn_status meet(struct mesh *mesh)
{
    tn_status status = listen_here(mesh);

    while (status == TN_OK && missing(mesh) > 0) {
        call_ranks(mesh);
        status = listen_once(mesh);
        if (status == TN_OK && missing(mesh) > 0 && group_now() > mesh->end)
            status = too_late(mesh);
    }
    stop_listening(mesh);
    return status == TN_OK ? share_boards(mesh) : status;
}

tn_status mesh_connect(struct group *group, const struct mesh_address *address, const char *token)
{
    struct mesh mesh = { .group = group, .address = address, .listener = -1 };
    tn_status status = TN_ERR_MEMORY;

    memcpy(mesh.own.magic, magic, sizeof magic);
    memcpy(mesh.own.token, token, strlen(token));
    mesh.own.rank = group->rank;
    mesh.own.size = group->size;
    mesh.own.board = sizeof(struct board);
    mesh.own.shared = group->shared;
    mesh.end = group_now() + (int64_t)(group->timeout * 1e9);
    mesh.count = 2 * group->size + STRANGERS;
    mesh.links = tn_calloc((size_t)mesh.count, sizeof *mesh.links);
    if (mesh.links != NULL) {
        for (int32_t i = 0; i < mesh.count; i++)
            mesh.links[i].socket = -1;
        status = meet(&mesh);
        for (int32_t i = 0; i < mesh.count; i++)
            hang_up(&mesh.links[i]);
    }
    tn_free(mesh.links);
    return status;
}
