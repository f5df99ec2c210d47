package connlab.backend.management;

import connlab.backend.tomcat.TrafficProtocol;
import connlab.backend.traffic.Report;
import connlab.backend.waitingroom.WaitingRoom;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.tomcat.TomcatWebServer;
import org.springframework.boot.web.server.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Component;

/** {@code GET /actuator/tomcat}: what the live traffic connector and the waiting room report. */
@Component
@Profile("tomcat")
@Endpoint(id = "tomcat")
class TomcatEndpoint {

    private final ServletWebServerApplicationContext context;
    private final WaitingRoom room;

    TomcatEndpoint(ServletWebServerApplicationContext context, WaitingRoom room) {
        this.context = context;
        this.room = room;
    }

    @ReadOperation
    Report report() {
        TrafficProtocol traffic = traffic();
        return new Report(
                traffic.settings(), traffic.connections(), traffic.threads(), traffic.requests(), room.statistics());
    }

    private TrafficProtocol traffic() {
        TomcatWebServer server = (TomcatWebServer) context.getWebServer();
        return (TrafficProtocol) server.getTomcat().getConnector().getProtocolHandler();
    }
}
