package com.example.shop;

import java.io.Serializable;
import java.util.LinkedHashSet;
import java.util.Set;
import org.springframework.stereotype.Component;
import org.springframework.web.context.annotation.SessionScope;

@Component
@SessionScope
public class Cart implements Serializable {

    private final Set<Long> productIds = new LinkedHashSet<>();

    public void add(long productId) {
        productIds.add(productId);
    }

    public Set<Long> productIds() {
        return Set.copyOf(productIds);
    }

    public void empty() {
        productIds.clear();
    }
}
