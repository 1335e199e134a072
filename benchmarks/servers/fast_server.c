/* An MCP server that costs next to nothing, so that what is measured is the client.

   fast_server stdio             [--tools N] [--page P]
   fast_server http-json|http-sse [--tools N] [--page P]    prints "READY http://127.0.0.1:PORT/mcp",
                                                            ends when its standard input does

   It speaks both eras, believes what it is told, and answers in the order of its input. Tools: `echo`
   returns its `text`, `wait` answers after `ms` milliseconds, `big` returns `bytes` bytes of text; with
   --tools there are N in all, listed in pages of P (0: one page). Never a model of correctness. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

typedef struct { char *at; size_t length, room; } Buffer;
typedef struct { const char *at; size_t length; } Span;
typedef struct { int descriptor; Buffer in; } Connection;
typedef struct { int64_t due; int descriptor; char id[64]; } Delayed;
typedef struct { Span id, method, name, cursor, text, ms, bytes, version; } Message;

enum { STDIO, HTTP_JSON, HTTP_SSE };

static int mode;
static Buffer *pages;
static int page_count;
static Buffer out, body;
static Delayed *delayed;
static int delayed_count, delayed_room;

#define SERVER "{\"name\":\"fast\",\"version\":\"1.0\"}"
#define OPENING "{\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":" SERVER "},"

static void die(const char *what) { perror(what); exit(1); }

static char *reserve(Buffer *buffer, size_t more) {
    if (buffer->length + more > buffer->room) {
        buffer->room = (buffer->length + more) * 2;
        if (!(buffer->at = realloc(buffer->at, buffer->room))) die("realloc");
    }
    return buffer->at + buffer->length;
}

static void put(Buffer *buffer, const char *at, size_t length) {
    memcpy(reserve(buffer, length), at, length);
    buffer->length += length;
}

static void put_text(Buffer *buffer, const char *text) { put(buffer, text, strlen(text)); }

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* JSON: just enough to find members; the input is trusted to be valid. -------------------------- */

static const char *skip_space(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') at++;
    return at;
}

static const char *skip_string(const char *at) {
    for (at++; *at != '"'; at++)
        if (*at == '\\') at++;
    return at + 1;
}

static const char *skip_value(const char *at) {
    if (*at == '"') return skip_string(at);
    if (*at != '{' && *at != '[') {
        while (*at && !strchr(",}] \t\r\n", *at)) at++;
        return at;
    }
    for (int depth = 0; *at;) {
        if (*at == '"') { at = skip_string(at); continue; }
        if (*at == '{' || *at == '[') depth++;
        if ((*at == '}' || *at == ']') && --depth == 0) return at + 1;
        at++;
    }
    return at;
}

static int is(Span span, const char *text) {
    return span.length == strlen(text) && !memcmp(span.at, text, span.length);
}

static void read_members(const char *at, Message *message, int depth) {
    if (*at != '{') return;
    for (at = skip_space(at + 1); *at == '"';) {
        const char *end = skip_string(at);
        Span key = {at + 1, (size_t)(end - at) - 2};
        at = skip_space(skip_space(end) + 1);
        end = skip_value(at);
        Span value = {at, (size_t)(end - at)};
        if (depth == 0) {
            if (is(key, "id")) message->id = value;
            else if (is(key, "method")) message->method = value;
            else if (is(key, "params")) read_members(at, message, 1);
        } else if (depth == 1) {
            if (is(key, "name")) message->name = value;
            else if (is(key, "cursor")) message->cursor = value;
            else if (is(key, "protocolVersion")) message->version = value;
            else if (is(key, "arguments")) read_members(at, message, 2);
        } else {
            if (is(key, "text")) message->text = value;
            else if (is(key, "ms")) message->ms = value;
            else if (is(key, "bytes")) message->bytes = value;
        }
        at = skip_space(end);
        if (*at == ',') at = skip_space(at + 1);
    }
}

/* Answers --------------------------------------------------------------------------------------- */

static void open_answer(Buffer *to, Span id) {
    put_text(to, "{\"jsonrpc\":\"2.0\",\"id\":");
    put(to, id.at, id.length);
    put_text(to, ",\"result\":" OPENING);
}

static void text_result(Buffer *to, Span id, Span text) {
    open_answer(to, id);
    put_text(to, "\"content\":[{\"type\":\"text\",\"text\":");
    put(to, text.at, text.length);
    put_text(to, "}],\"isError\":false}}");
}

static void big_result(Buffer *to, Span id, size_t bytes) {
    open_answer(to, id);
    put_text(to, "\"content\":[{\"type\":\"text\",\"text\":\"");
    reserve(to, bytes + 128);
    const char *line = "The quick brown fox jumps over the lazy dog, 0123456789 times.\\n";
    size_t length = strlen(line);
    for (; bytes >= length; bytes -= length) put(to, line, length);
    put(to, line, bytes > 1 ? bytes - 2 : 0);
    put_text(to, "\"}],\"isError\":false}}");
}

/* Returns 0 if the answer comes later. */
static int answer(Buffer *to, const Message *message, int descriptor) {
    Span method = message->method, id = message->id;
    if (is(method, "\"tools/call\"")) {
        if (is(message->name, "\"wait\"")) {
            if (delayed_count == delayed_room) {
                delayed_room = delayed_room * 2 + 64;
                if (!(delayed = realloc(delayed, (size_t)delayed_room * sizeof *delayed))) die("realloc");
            }
            Delayed *later = &delayed[delayed_count++];
            later->due = now() + (int64_t)(strtod(message->ms.at, NULL) * 1e6);
            later->descriptor = descriptor;
            snprintf(later->id, sizeof later->id, "%.*s", (int)id.length, id.at);
            return 0;
        }
        if (is(message->name, "\"big\"")) big_result(to, id, strtoul(message->bytes.at, NULL, 10));
        else text_result(to, id, message->text.length ? message->text : (Span){"\"\"", 2});
    } else if (is(method, "\"tools/list\"")) {
        int page = message->cursor.length > 2 ? atoi(message->cursor.at + 1) : 0;
        if (page < 0 || page >= page_count) page = 0;
        open_answer(to, id);
        put(to, pages[page].at, pages[page].length);
        put_text(to, "}}");
    } else if (is(method, "\"initialize\"")) {
        open_answer(to, id);
        put_text(to, "\"capabilities\":{\"tools\":{}},\"serverInfo\":" SERVER ",\"protocolVersion\":");
        put(to, message->version.at, message->version.length);
        put_text(to, "}}");
    } else if (is(method, "\"server/discover\"")) {
        open_answer(to, id);
        put_text(to, "\"capabilities\":{\"tools\":{}},\"supportedVersions\":[\"2026-07-28\"],\"ttlMs\":0,\"cacheScope\":\"private\"}}");
    } else if (is(method, "\"ping\"")) {
        put_text(to, "{\"jsonrpc\":\"2.0\",\"id\":");
        put(to, id.at, id.length);
        put_text(to, ",\"result\":{}}");
    } else {
        put_text(to, "{\"jsonrpc\":\"2.0\",\"id\":");
        put(to, id.at, id.length);
        put_text(to, ",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}");
    }
    return 1;
}

static void make_pages(int tools, int per_page) {
    if (per_page <= 0) per_page = tools;
    page_count = (tools + per_page - 1) / per_page;
    if (!(pages = calloc((size_t)page_count, sizeof *pages))) die("calloc");
    for (int number = 0; number < tools; number++) {
        Buffer *page = &pages[number / per_page];
        char text[1024];
        put_text(page, number % per_page ? "," : "\"tools\":[");
        const char *known[][3] = {{"echo", "text", "string"}, {"wait", "ms", "number"}, {"big", "bytes", "integer"}};
        if (number < 3)
            snprintf(text, sizeof text,
                "{\"name\":\"%s\",\"description\":\"Measures.\",\"inputSchema\":{\"type\":\"object\",\"properties\":"
                "{\"%s\":{\"type\":\"%s\"}},\"required\":[\"%s\"]}}",
                known[number][0], known[number][1], known[number][2], known[number][1]);
        else snprintf(text, sizeof text,
            "{\"name\":\"search_records_%d\",\"title\":\"Search records %d\",\"description\":\"Finds the records of table %d that match "
            "a query, newest first.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\","
            "\"description\":\"What to look for\"},\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"default\":10},"
            "\"fields\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},\"required\":[\"query\"]},"
            "\"annotations\":{\"readOnlyHint\":true}}", number, number, number);
        put_text(page, text);
        if ((number + 1) % per_page == 0 || number + 1 == tools) {
            put_text(page, "],\"ttlMs\":0,\"cacheScope\":\"private\"");
            if (number + 1 < tools) {
                snprintf(text, sizeof text, ",\"nextCursor\":\"%d\"", number / per_page + 1);
                put_text(page, text);
            }
        }
    }
}

/* Sending --------------------------------------------------------------------------------------- */

static int send_all(int descriptor, Buffer *buffer) {
    for (size_t done = 0; done < buffer->length;) {
        ssize_t sent = write(descriptor, buffer->at + done, buffer->length - done);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd wait = {descriptor, POLLOUT, 0};
            poll(&wait, 1, -1);
            continue;
        }
        if (sent <= 0) { buffer->length = 0; return 0; }
        done += (size_t)sent;
    }
    buffer->length = 0;
    return 1;
}

static void put_http(Buffer *to, const Buffer *content, int opens_session) {
    char head[256];
    const char *session = opens_session ? "Mcp-Session-Id: fast\r\n" : "";
    if (mode == HTTP_JSON) {
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n", session, content->length);
        put_text(to, head);
        put(to, content->at, content->length);
    } else {
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n%sTransfer-Encoding: chunked\r\n\r\n%zx\r\n", session, content->length + 24);
        put_text(to, head);
        put_text(to, "event: message\r\ndata: ");
        put(to, content->at, content->length);
        put_text(to, "\n\n\r\n0\r\n\r\n");
    }
}

/* Answers what is due; returns the time of the next, 0 if there is none. */
static int64_t send_due(void) {
    int64_t next = 0, time = now();
    for (int i = 0; i < delayed_count;) {
        if (delayed[i].due > time) {
            if (!next || delayed[i].due < next) next = delayed[i].due;
            i++;
            continue;
        }
        Delayed later = delayed[i];
        /* Keep the order: those that were asked first are answered first. */
        memmove(&delayed[i], &delayed[i + 1], (size_t)(--delayed_count - i) * sizeof *delayed);
        Span id = {later.id, strlen(later.id)};
        if (mode == STDIO) {
            text_result(&out, id, (Span){"\"done\"", 6});
            put(&out, "\n", 1);
        } else {
            body.length = 0;
            text_result(&body, id, (Span){"\"done\"", 6});
            put_http(&out, &body, 0);
            send_all(later.descriptor, &out);
        }
    }
    if (mode == STDIO && out.length) send_all(1, &out);
    return next;
}

/* stdio ----------------------------------------------------------------------------------------- */

static void serve_stdio(void) {
    Buffer in = {0};
    for (;;) {
        int64_t next = delayed_count ? send_due() : 0;
        if (next) {
            int64_t left = next - now();
            struct timespec wait = {left > 0 ? left / 1000000000 : 0, left > 0 ? left % 1000000000 : 0};
            struct pollfd input = {0, POLLIN, 0};
            if (ppoll(&input, 1, &wait, NULL) == 0) continue;
        }
        reserve(&in, 1 << 16);
        ssize_t got = read(0, in.at + in.length, in.room - in.length - 1);
        if (got <= 0) return;
        in.length += (size_t)got;
        size_t done = 0;
        char *end;
        while ((end = memchr(in.at + done, '\n', in.length - done))) {
            *end = 0;
            Message message = {0};
            read_members(skip_space(in.at + done), &message, 0);
            if (message.id.length && message.method.length && answer(&out, &message, 1)) put(&out, "\n", 1);
            done = (size_t)(end - in.at) + 1;
        }
        memmove(in.at, in.at + done, in.length - done);
        in.length -= done;
        if (out.length && !send_all(1, &out)) return;
    }
}

/* HTTP ------------------------------------------------------------------------------------------ */

static size_t content_length(const char *head, const char *end) {
    for (const char *line = head; line < end; line = memchr(line, '\n', (size_t)(end - line)) + 1) {
        if (!strncasecmp(line, "content-length:", 15)) return strtoul(line + 15, NULL, 10);
        if (!memchr(line, '\n', (size_t)(end - line))) break;
    }
    return 0;
}

/* Serves the requests that are complete; returns 0 when the connection is over. */
static int serve_requests(Connection *connection) {
    Buffer *in = &connection->in;
    size_t done = 0;
    for (;;) {
        char *start = in->at + done;
        char *head_end = memmem(start, in->length - done, "\r\n\r\n", 4);
        if (!head_end) break;
        size_t length = content_length(start, head_end + 2);
        char *content = head_end + 4;
        if (in->length - (size_t)(content - in->at) < length) break;
        done = (size_t)(content - in->at) + length;
        if (!strncmp(start, "POST", 4)) {
            char kept = content[length];
            content[length] = 0;
            Message message = {0};
            read_members(skip_space(content), &message, 0);
            body.length = 0;
            if (!message.id.length || !message.method.length)
                put_text(&out, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
            else if (answer(&body, &message, connection->descriptor))
                put_http(&out, &body, is(message.method, "\"initialize\""));
            content[length] = kept;
        } else if (!strncmp(start, "DELETE", 6)) {
            put_text(&out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        } else {
            put_text(&out, "HTTP/1.1 405 Method Not Allowed\r\nAllow: POST, DELETE\r\nContent-Length: 0\r\n\r\n");
        }
    }
    memmove(in->at, in->at + done, in->length - done);
    in->length -= done;
    return !out.length || send_all(connection->descriptor, &out);
}

static void close_connection(Connection *connection) {
    for (int i = 0; i < delayed_count;) {
        if (delayed[i].descriptor == connection->descriptor) delayed[i] = delayed[--delayed_count];
        else i++;
    }
    close(connection->descriptor);
    free(connection->in.at);
    free(connection);
}

static void serve_http(void) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) die("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    int poller = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    Connection input = {0}, listening = {listener, {0}}, timing = {timer, {0}};
    Connection *special[] = {&input, &listening, &timing};
    for (int i = 0; i < 3; i++) {
        struct epoll_event event = {EPOLLIN, {.ptr = special[i]}};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, special[i]->descriptor, &event)) die("epoll_ctl");
    }
    printf("READY http://127.0.0.1:%d/mcp\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        struct epoll_event events[256];
        int count = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < count; i++) {
            Connection *connection = events[i].data.ptr;
            if (connection == &input) {
                char ignored[256];
                if (read(0, ignored, sizeof ignored) <= 0) return;
            } else if (connection == &listening) {
                int accepted;
                while ((accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
                    Connection *fresh = calloc(1, sizeof *fresh);
                    if (!fresh) die("calloc");
                    fresh->descriptor = accepted;
                    struct epoll_event event = {EPOLLIN, {.ptr = fresh}};
                    if (epoll_ctl(poller, EPOLL_CTL_ADD, accepted, &event)) die("epoll_ctl");
                }
            } else if (connection == &timing) {
                uint64_t ignored;
                if (read(timer, &ignored, sizeof ignored) < 0 && errno != EAGAIN) die("timer");
            } else {
                Buffer *in = &connection->in;
                reserve(in, 1 << 14);
                ssize_t got = read(connection->descriptor, in->at + in->length, in->room - in->length - 1);
                if (got < 0 && errno == EAGAIN) continue;
                if (got > 0) in->length += (size_t)got;
                if (got <= 0 || !serve_requests(connection)) close_connection(connection);
            }
        }
        if (delayed_count) {
            int64_t next = send_due();
            struct itimerspec setting = {{0, 0}, {next / 1000000000, next % 1000000000}};
            timerfd_settime(timer, TFD_TIMER_ABSTIME, &setting, NULL);
        }
    }
}

int main(int count, char **arguments) {
    int tools = 3, per_page = 0;
    if (count > 1 && !strcmp(arguments[1], "http-json")) mode = HTTP_JSON;
    else if (count > 1 && !strcmp(arguments[1], "http-sse")) mode = HTTP_SSE;
    else if (count < 2 || strcmp(arguments[1], "stdio")) {
        fprintf(stderr, "usage: fast_server stdio|http-json|http-sse [--tools N] [--page P]\n");
        return 2;
    }
    for (int i = 2; i + 1 < count; i += 2) {
        if (!strcmp(arguments[i], "--tools")) tools = atoi(arguments[i + 1]);
        if (!strcmp(arguments[i], "--page")) per_page = atoi(arguments[i + 1]);
    }
    if (tools < 3) tools = 3;
    signal(SIGPIPE, SIG_IGN);
    make_pages(tools, per_page);
    if (mode == STDIO) serve_stdio();
    else serve_http();
    return 0;
}
