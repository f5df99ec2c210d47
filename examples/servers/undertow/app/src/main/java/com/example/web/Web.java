package com.example.web;

import java.time.Duration;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.embedded.undertow.UndertowServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.xnio.Options;

/** A page that answers at once, and /slow after ANSWER_SECONDS. */
@RestController
@SpringBootApplication
public class Web {

    public static void main(String[] arguments) {
        SpringApplication.run(Web.class, arguments);
    }

    @GetMapping("/")
    String page() {
        return "done\n";
    }

    @GetMapping("/slow")
    String slow(@Value("${ANSWER_SECONDS}") long seconds) throws InterruptedException {
        Thread.sleep(Duration.ofSeconds(seconds));
        return page();
    }

    /** Spring Boot has no property for the backlog. */
    @Bean
    WebServerFactoryCustomizer<UndertowServletWebServerFactory> backlog(@Value("${BACKLOG}") int backlog) {
        return factory -> factory.addBuilderCustomizers(builder -> builder.setSocketOption(Options.BACKLOG, backlog));
    }
}
