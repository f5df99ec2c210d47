package connlab.backend.netty;

import connlab.backend.delay.Delay;
import io.netty.channel.EventLoop;
import java.nio.ByteBuffer;
import java.time.Duration;
import org.springframework.context.annotation.Profile;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferFactory;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpRequestDecorator;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.netty.http.server.HttpServerRequest;

/** The slow handler on an event loop: it waits without a thread, or blocks the loop, as a knob says. */
@RestController
@Profile("netty")
class NettyDelayController {

    private final NettyTraffic traffic;
    private final NettyProperties knobs;

    NettyDelayController(NettyTraffic traffic, NettyProperties knobs) {
        this.traffic = traffic;
        this.knobs = knobs;
    }

    /** Answers as the handler of the other servers does. */
    @RequestMapping(
            path = "/api/delay",
            method = {RequestMethod.GET, RequestMethod.POST})
    Mono<Void> delay(
            @RequestParam(defaultValue = "0") long ms,
            @RequestParam(defaultValue = "0") long bytes,
            ServerHttpRequest request,
            ServerHttpResponse response) {
        Delay.requireValid(ms, bytes);
        response.getHeaders().setContentType(MediaType.TEXT_PLAIN);
        response.getHeaders().setContentLength(bytes);
        Mono<Void> answer = response.writeWith(body(response.bufferFactory(), bytes));
        if (!knobs.blockingHandler()) {
            return Mono.delay(Duration.ofMillis(ms), loopOf(request)).then(answer);
        }
        try {
            traffic.block(Duration.ofMillis(ms));
        } catch (InterruptedException _) {
            Thread.currentThread().interrupt();
            throw new ResponseStatusException(HttpStatus.SERVICE_UNAVAILABLE, "the server is stopping");
        }
        return answer;
    }

    /** The connection's own event loop: an answer that another thread begins may race with it, and never end. */
    private static Scheduler loopOf(ServerHttpRequest request) {
        HttpServerRequest here = ServerHttpRequestDecorator.getNativeRequest(request);
        EventLoop[] loop = new EventLoop[1];
        here.withConnection(connection -> loop[0] = connection.channel().eventLoop());
        return Schedulers.fromExecutorService(loop[0]);
    }

    private static Flux<DataBuffer> body(DataBufferFactory buffers, long bytes) {
        int pieces = Math.toIntExact((bytes + Delay.FILLING.length - 1) / Delay.FILLING.length);
        return Flux.range(0, pieces)
                .map(piece -> (int) Math.min(bytes - (long) piece * Delay.FILLING.length, Delay.FILLING.length))
                .map(length -> buffers.wrap(ByteBuffer.wrap(Delay.FILLING, 0, length)));
    }
}
